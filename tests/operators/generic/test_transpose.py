# SPDX-License-Identifier: Apache-2.0
import itertools

import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def


def reference(x, perm=None, transpose_layout=True, output_layout=None):
    return np.transpose(x, perm)


TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?")
TestTranspose = op_test(
    "transpose",
    reference,
    dtypes=TYPES,
    args=[{"perm": p} for p in itertools.permutations(range(3))],
    errors=[
        ({"perm": [0, 1]}, RuntimeError, "has 2 values, the input 3"),
        ({"perm": [0, 1, 1]}, ValueError, "each axis from 0 to 2 once"),
        ({"output_layout": "AB"}, RuntimeError, "does not fit"),
    ],
)
TestDefaults = op_test(
    "transpose", reference, args=[{}, {"transpose_layout": False}, {"perm": [2, 0, 1], "output_layout": "ABC"}]
)
TestNoLayout = op_test("transpose", reference, layouts=("",), args=[{"perm": [1, 0]}, {}])


def _channels(n):
    return op_test(
        "transpose",
        reference,
        dtypes=("u1", "u2", "f4", "f8"),
        channels=n,
        args=[{"perm": p} for p in ([2, 0, 1], [1, 2, 0], [1, 0, 2])],
    )


TestOneChannel, TestTwoChannels, TestFourChannels, TestFiveChannels = map(_channels, (1, 2, 4, 5))
TestPlanes = op_test(
    "transpose", reference, layouts=("CHW",), dtypes=("u1", "f4"), args=[{"perm": [1, 2, 0]}, {"perm": [2, 1, 0]}]
)
TestVolumes = op_test(
    "transpose", reference, layouts=("DHWC",), args=[{"perm": p} for p in itertools.permutations(range(4))]
)
TestSequences = op_test(
    "transpose", reference, layouts=("FHWC",), args=[{"perm": p} for p in ([0, 3, 1, 2], [3, 0, 1, 2], [1, 0, 2, 3])]
)


def _run(x, layout=None, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.transpose(fn.external_source(source=lambda: [x], layout=layout), **kwargs)

    out = pipe().run()[0]
    return np.array(out.at(0)), out.layout()


@pytest.mark.parametrize(
    "kwargs, layout",
    [
        ({}, "CWH"),
        ({"perm": [1, 2, 0]}, "WCH"),
        ({"transpose_layout": False}, "HWC"),
        ({"output_layout": "XYZ"}, "XYZ"),
    ],
)
def test_layout(kwargs, layout):
    assert _run(np.zeros((2, 3, 4), "u1"), "HWC", **kwargs)[1] == layout


@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 3, 1, 2), (2, 3, 2, 3, 2, 3), (1, 2, 1, 2, 1, 2, 1, 3)], ids=str)
def test_dimensions(shape):
    x = np.arange(np.prod(shape, dtype=int), dtype="i4").reshape(shape)
    rng = np.random.default_rng(0)
    for _ in range(20):
        perm = rng.permutation(len(shape)).tolist()
        np.testing.assert_array_equal(_run(x, perm=perm)[0], x.transpose(perm), err_msg=str(perm))


def test_large_tiles():
    x = np.random.default_rng(0).integers(0, 255, (70, 5, 97), "u1")
    for perm in itertools.permutations(range(3)):
        np.testing.assert_array_equal(_run(x, perm=list(perm))[0], x.transpose(perm))
