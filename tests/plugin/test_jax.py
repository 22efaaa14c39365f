# SPDX-License-Identifier: Apache-2.0
"""The iterators for JAX: dictionaries of arrays on the CPU without a copy, one device or several (forced CPU
devices)."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from penstock import fn, pipeline_def  # noqa: E402
from penstock.pipeline import Pipeline  # noqa: E402
from penstock.plugin.jax import DALIGenericIterator, data_iterator  # noqa: E402
from penstock.plugin.jax.iterator import DALIGenericIterator as FromModule  # noqa: E402


@pytest.fixture(scope="module")
def iterator_fn(files):
    """As in the tutorials, except for the decoder."""

    @data_iterator(output_map=["data", "labels"], reader_name="reader")
    def iterator_fn(n=7):
        data, labels = fn.readers.file(files=files[:n], labels=list(range(n)), name="reader")
        return data, labels

    return iterator_fn


def test_a_dictionary_of_arrays(iterator_fn):
    it = iterator_fn(batch_size=1)
    batch = next(it)
    assert isinstance(it, DALIGenericIterator) and DALIGenericIterator is FromModule
    assert isinstance(batch, dict) and list(batch) == ["data", "labels"]
    assert all(isinstance(v, jax.Array) for v in batch.values())
    assert batch["data"].shape == (1, 8) and batch["labels"].shape == (1, 1) and batch["labels"].dtype == np.int32
    assert len(it) == 7 and len([*it]) == 6
    assert batch["data"].devices() == {jax.devices("cpu")[0]}


def test_arguments_of_pipeline_and_function(iterator_fn):
    it = iterator_fn(n=4, batch_size=2, num_threads=2, seed=7)
    assert it._pipes[0].num_threads == 2 and it._pipes[0].seed == 7 and it._pipes[0].device_id == 0
    assert [b["labels"].flatten().tolist() for b in it] == [[0, 1], [2, 3]]
    assert iterator_fn(batch_size=2)._pipes[0].num_threads == 4
    assert iterator_fn.__name__ == "iterator_fn"


def test_function_and_decorator_without_arguments(files):
    def pipe():
        return fn.external_source(source=lambda i: np.float32([[i], [i]]))

    it = data_iterator(pipe, output_map=["x"], size=6)(batch_size=2)
    assert [b["x"][0, 0].item() for b in it] == [0, 1, 2]


def test_policies(iterator_fn, make):
    def labels(policy):
        it = DALIGenericIterator(make.reader(), ["data", "labels"], reader_name="reader", last_batch_policy=policy)
        return [b["labels"].flatten().tolist() for b in it]

    assert labels("FILL")[-1] == [6, 0] and labels("DROP")[-1] == [4, 5] and labels("partial")[-1] == [6]


def test_no_copy(monkeypatch):
    def define():
        # A copy, as the user's memory may not have the alignment that JAX requires.
        return fn.copy(fn.external_source(source=lambda i: np.full((2, 16, 16, 3), i, "f4")))

    pipe = pipeline_def(define, batch_size=2, num_threads=1)()
    seen = []
    run = Pipeline.run
    monkeypatch.setattr(Pipeline, "run", lambda *a: seen.append(run(*a)) or seen[-1])
    it = DALIGenericIterator(pipe, ["x"], prepare_first_batch=False)
    arrays = []
    for _ in range(5):
        arrays.append(next(it)["x"])
        assert arrays[-1].unsafe_buffer_pointer() == seen[-1][0].data_ptr()
    seen.clear()
    pipe.close()
    del it, pipe
    assert [a[1, 3, 3, 1].item() for a in arrays] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f2", "f4", "?", "u2", "u4"])
def test_types(make, dtype):
    x = np.array([[0, 1], [2, 3]]).astype(dtype)
    array = next(DALIGenericIterator(make.source(lambda i: x), ["x"]))["x"]
    assert array.dtype == x.dtype and (np.asarray(array) == x).all()


def test_64_bit_types_follow_jax(make):
    x = np.int64([[1], [2]])
    assert next(DALIGenericIterator(make.source(lambda i: x), ["x"]))["x"].dtype == np.int32
    enable_x64 = getattr(jax, "enable_x64", None)
    if not callable(enable_x64):  # JAX before 0.8
        from jax.experimental import enable_x64
    with enable_x64(True):
        assert next(DALIGenericIterator(make.source(lambda i: x), ["x"]))["x"].dtype == np.int64


def test_skipped_samples(files):
    @data_iterator(output_map=["data", "labels"], reader_name="reader")
    def pipe():
        names = [f + ".missing" if i in (1, 4, 5) else f for i, f in enumerate(files[:6])]
        return fn.readers.file(files=names, labels=list(range(6)), name="reader")

    it = pipe(batch_size=2, on_error="skip")
    assert [b["labels"].flatten().tolist() for b in it] == [[0], [2, 3]] and len(it) == 3


@pytest.mark.parametrize("options", [{}, {"pmap_compatible": True}])
def test_several_pipelines_on_one_device(options):
    """With more pipelines than JAX devices, the axis of pipelines still exists, as in DALI."""
    n = len(jax.local_devices()) + 1

    def numbers(k):
        return pipeline_def(
            lambda: fn.external_source(lambda i: np.full((2, 3), 10 * k + i, "f4")), batch_size=2, num_threads=1
        )()

    it = DALIGenericIterator([numbers(k) for k in range(n)], ["x"], size=4 * n, **options)
    for i, batch in enumerate(it):
        assert batch["x"].shape == (n, 2, 3) and batch["x"].devices() == {jax.local_devices()[0]}
        np.testing.assert_array_equal(batch["x"][:, 1, 2], [10 * k + i for k in range(n)])
    assert i == 1
    with pytest.raises(ValueError, match=f"{n} pipelines need as many devices"):
        DALIGenericIterator([numbers(k) for k in range(n)], ["x"], size=4, devices=jax.local_devices())


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda p: DALIGenericIterator(p(), ["x"]), ValueError, "output 'x'.*differ in shape"),
        (lambda p: DALIGenericIterator(p(), ["x"], devises=[]), TypeError, "Did you mean 'devices'"),
        (
            lambda p: DALIGenericIterator(p(), ["x", "y"]),
            ValueError,
            r"2 names \('x', 'y'\), but the pipeline has 1 output",
        ),
        (
            lambda p: DALIGenericIterator([p(), p()], ["x"], size=4, last_batch_policy="PARTIAL"),
            ValueError,
            "single pipeline",
        ),
        (
            lambda p: DALIGenericIterator(p(), ["x"], reader_name="reader"),
            ValueError,
            "no reader of that name; it has none",
        ),
        (lambda p: data_iterator(p, sharding=object(), devices=[]), ValueError, "exclude each other"),
        (lambda p: data_iterator(3), TypeError, "decorates a function"),
        (lambda p: data_iterator(pipeline_def(len)), TypeError, "decorate the function itself"),
        (
            lambda p: data_iterator(lambda: None, output_map=["x"])(batch_size=2, checkpoints=[]),
            ValueError,
            "0 states, but there are 1 pipelines",
        ),
        (
            lambda p: data_iterator(lambda: None, output_map=["x"])(batch_size=2, checkpoints="state"),
            TypeError,
            "the list that checkpoints",
        ),
        (lambda p: data_iterator(lambda: 1, output_map=["x"])(batch_sise=2), TypeError, "Did you mean 'batch_size'"),
        (
            lambda p: data_iterator(lambda: 1, output_map=["x"], devices=jax.devices())(batch_size=2),
            TypeError,
            "num_shards and shard_id",
        ),
    ],
)
def test_mistakes(make, call, error, text):
    with pytest.raises(error, match=text):
        call(make.ragged)


def test_arrays_alive_when_the_interpreter_ends():
    program = (
        "import numpy as np\nfrom penstock import fn, pipeline_def\nfrom penstock.plugin.jax import "
        "DALIGenericIterator\n"
        "pipe = pipeline_def(batch_size=2)(lambda: fn.external_source(source=lambda i: np.zeros((2, 8), 'f4')))()\n"
        "it = DALIGenericIterator(pipe, ['x'])\nkept = [next(it) for _ in range(4)]\n"
    )
    env = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert out.returncode == 0 and "Exception" not in out.stderr, out.stderr


def test_decorators_have_the_arguments_of_the_iterator():
    """In DALI's order. They are defined in the constructor only."""
    shown = inspect.signature(data_iterator)
    names = ["pipeline_fn", "output_map", "size", "reader_name", "auto_reset", "last_batch_padded"]
    names += ["last_batch_policy", "prepare_first_batch", "sharding", "devices", "pmap_compatible"]
    assert list(shown.parameters) == names and shown.parameters["output_map"].default == []
    of_class = inspect.signature(DALIGenericIterator).parameters
    assert all(shown.parameters[n].default == of_class[n].default for n in names[2:])
    assert ">>> @data_iterator" in data_iterator.__doc__ and data_iterator.__name__ == "data_iterator"
    with pytest.raises(TypeError, match="data_iterator.* unexpected argument 'sise'. Did you mean 'size'"):
        data_iterator(sise=4)


def test_what_programs_take_from_the_integration_module(make):
    from penstock.plugin.jax.integration import _jax_device, _to_jax_array

    (out,) = make.source(lambda i: np.full((2, 32), 3, "f4"), is_copied=True).run()
    for x in (out, out.as_tensor(), out[1]):
        shared, copied = _to_jax_array(x, copy=False), _to_jax_array(x, copy=True)
        assert shared.unsafe_buffer_pointer() == x.data_ptr() != copied.unsafe_buffer_pointer()
        assert (shared == copied).all() and shared[..., 0].max() == 3 and _jax_device(shared) == jax.devices("cpu")[0]
