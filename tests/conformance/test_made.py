# SPDX-License-Identifier: Apache-2.0
"""Operators without inputs, and those that reorder samples, compared with the real DALI."""

import numpy as np
import pytest

from conformance.test_files_and_facts import both, side_of

DTYPES = ("UINT8", "INT8", "UINT16", "INT32", "UINT64", "FLOAT16", "FLOAT", "FLOAT64", "BOOL")
SHAPES = {
    "none": {},
    "scalar": {"shape": []},
    "vector": {"shape": [3]},
    "image": {"shape": [2, 3, 1], "layout": "HWC"},
    "empty": {"shape": [4, 0]},
    "wrong layout": {"shape": [2, 2], "layout": "HWC"},
    "negative": {"shape": [-1, 2]},
}
RAGGED = [[2, 3], [0, 5], [1, 1], [4, 2]]


def types_of(fn):
    from penstock import types

    return types if fn is side_of("penstock")[0] else __import__("nvidia.dali.types").dali.types


def data(fn, values, layout=None):
    return fn.external_source(lambda i: [np.array(v) for v in values], layout=layout)


@pytest.mark.parametrize("name", ["zeros", "ones"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_filled(name, dtype, shape):
    both(name, lambda fn, op: op(dtype=getattr(types_of(fn), dtype), **SHAPES[shape]), 3)


@pytest.mark.parametrize("name", ["zeros", "ones"])
@pytest.mark.parametrize("layout", [None, "HW", "HWC"])
def test_filled_of_shapes_that_are_data(name, layout):
    both(name, lambda fn, op: op(shape=data(fn, np.int32(RAGGED)), layout=layout), len(RAGGED))


@pytest.mark.parametrize("dtype", [t for t in DTYPES if t != "FLOAT64"])  # which DALI refuses
@pytest.mark.parametrize("layout", [{}, {"layout": "XY"}, {"layout": "X"}])
@pytest.mark.parametrize(
    "value", [{"idata": [1, 2, 3, 100, 5, 6]}, {"fdata": [0.5, 1.5, -2.5, 3, 4, 1e3]}, {"idata": [7]}, {"fdata": 1.0}]
)
def test_constant(dtype, layout, value):
    both("constant", lambda fn, op: op(shape=[2, 3], dtype=getattr(types_of(fn), dtype), **value, **layout), 2)


SAMPLES = {
    "ragged": [np.full((k + 1, 2), k) for k in range(4)],
    "alike": [np.full((2, 2), k) for k in range(4)],
    "with empty ones": [np.full((k % 2, 2), k) for k in range(4)],
}


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8"])
@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("as_data", [False, True])
@pytest.mark.parametrize("indices", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 2, 2, 0], [0, 1, 2, 4], [0, -1, 2, 3]])
def test_permute_batch(dtype, samples, indices, as_data):
    def graph(fn, op):
        x = data(fn, [s.astype(dtype) for s in SAMPLES[samples]], "XY")
        return op(x, indices=data(fn, np.int32(indices)) if as_data else indices)

    assert both("permute_batch", graph, 4) == (0 <= min(indices) and max(indices) < 4)
