# SPDX-License-Identifier: Apache-2.0
import io
import pickle
import subprocess
from pathlib import Path

import pytest

from penstock import fn, ops, pipeline_def, reducers, sysconfig, tfrecord

FILES = sorted(map(str, (Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg")))[:2]


def test_a_kernel_compiles_against_what_sysconfig_says(tmp_path):
    source = tmp_path / "own.cpp"
    source.write_text('#include "core/tensor.h"\nint64_t volume(const Tensor &t) { return t.volume(); }\n')
    flags = sysconfig.get_compile_flags() + sysconfig.get_link_flags()
    command = ["g++", "-shared", "-fPIC", str(source), "-o", str(tmp_path / "own.so"), *flags]
    subprocess.run(command, check=True)


def test_the_pickler_sends_what_can_not_be_imported():
    out = io.BytesIO()
    k = 2
    reducers.DaliCallbackPickler(out, 5).dump([lambda x: x * k, io])
    double, module = pickle.loads(out.getvalue())
    assert double(21) == 42 and module is io


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda t: t.FixedLenFeature([], t.string, ""), "FixedLenFeature([], string, '')"),
        (lambda t: t.FixedLenFeature([2, 3], t.float32, 1.5), "FixedLenFeature([2, 3], float32, 1.5)"),
        (lambda t: t.VarLenFeature(t.int64, 0), "VarLenFeature(int64, 0)"),
        (lambda t: t.VarLenFeature([4], t.float32, 0.0), "VarLenFeature([4], float32, 0.0)"),
    ],
)
def test_features_of_records(make, text):
    assert repr(make(tfrecord)) == text


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda t: t.FixedLenFeature([1], t.int64), TypeError),
        (lambda t: t.FixedLenFeature([], t.int64, "a"), TypeError),
        (lambda t: t.FixedLenFeature([], t.float32, 1), TypeError),
        (lambda t: t.FixedLenFeature(1, t.int64, 0), TypeError),
        (lambda t: t.FixedLenFeature([-1], t.int64, 0), ValueError),
        (lambda t: t.FixedLenFeature([], 77, 0), ValueError),
        (lambda t: t.VarLenFeature(t.int64), TypeError),
        (lambda t: t.VarLenFeature(None, t.int64, 0), TypeError),
    ],
)
def test_features_of_records_that_can_not_be(make, error):
    with pytest.raises(error):
        make(tfrecord)


def test_operators_one_after_the_other():
    @pipeline_def(batch_size=2)
    def pipe():
        files = ops.readers.File(files=FILES)
        both = ops.Compose([ops.decoders.Image(), ops.Resize(size=(6, 8)), ops.Flip()])
        encoded, _ = files()
        return both(encoded), fn.flip(fn.resize(fn.decoders.image(encoded), size=(6, 8)))

    got, want = pipe().run()
    assert (got.as_array() == want.as_array()).all() and got.as_array().shape == (2, 6, 8, 3)
    with pytest.raises(TypeError, match="element 1"):
        ops.Compose([ops.Flip(), 3])
    with pytest.raises(ValueError, match="empty"):
        ops.Compose([])


def test_classes_by_their_schema():
    shrink = ops.python_op_factory("Shrink", "Resize")
    assert shrink.__name__ == "Shrink" and ops.python_op_factory("F", "readers__File").__name__ == "F"
    with pytest.raises(KeyError, match="resize"):
        ops.python_op_factory("Shrink", "Resise")
    ops.Reload()
