# SPDX-License-Identifier: Apache-2.0
import numpy as np
from axes_cases import ERRORS, NO_AXES, axes_of, count_of, photographs, shaped_input, shapes

from harness import Case, op_test, run
from penstock import types


def reference(x, axes=None, axis_names=None, keep_dims=False, dtype=types.FLOAT):
    """Computed with exact integers or float64. Integer means are rounded towards 0."""
    to = types.to_numpy_type(dtype)
    along = axes_of(x.ndim, axes, axis_names)
    exact = np.sum(x.astype("f8" if x.dtype.kind == "f" else x.dtype.kind + "8"), axis=along, keepdims=keep_dims)
    count = count_of(x, along)
    with np.errstate(invalid="ignore"):
        if np.dtype(to).kind == "f":
            return np.divide(exact, count).astype(to)
    return (np.abs(exact) // max(count, 1) * np.sign(exact)).astype(to)


WRAPS = "DALI sums in the type of the output, which overflows"
FLOATS = "DALI computes integers in float32, which has not digits enough"
TestMean = op_test(
    "reductions.mean",
    reference,
    cases=[
        *photographs(args=[(("u1", "f4"), NO_AXES)]),
        *[
            Case(x, "HWC", {"dtype": t, "axes": [2]})
            for x, t in (
                ("u1", types.UINT8),
                ("i1", types.INT8),
                ("u2", types.UINT16),
                ("i2", types.INT16),
                ("u4", types.UINT32),
                ("i4", types.INT32),
                ("u8", types.UINT64),
                ("i8", types.INT64),
            )
        ],
        *shapes(),
    ],
    make_input=shaped_input,
    dali_differs={
        "dtype=UINT8": WRAPS,
        "dtype=INT8": WRAPS,
        "dtype=UINT16": WRAPS,
        "dtype=INT16": WRAPS,
        "dtype=UINT32": FLOATS,
        "dtype=INT32": FLOATS,
        "dtype=UINT64": FLOATS,
        "dtype=INT64": FLOATS,
        "flat-int64": FLOATS,
    },
    errors=[*ERRORS, ({"dtype": types.UINT64}, RuntimeError, "type uint64 is not supported for input type uint8")],
)


def test_means_of_large_numbers():
    ((y,),) = run("reductions.mean", [np.full(9, 2**62, "i8")], Case("i8", "", {}), {})
    assert y == 2.0**62
    ((y,),) = run("reductions.mean", [np.full(1000, 200, "u1")], Case("u1", "", {"dtype": types.UINT8}), {})
    assert y == 200


def test_means_of_nothing():
    x = np.zeros((0, 2), "i2")
    ((y,),) = run("reductions.mean", [x], Case("i2", "", {"axes": [0]}), {})
    assert y.shape == (2,) and np.isnan(y).all()
    ((y,),) = run("reductions.mean", [x], Case("i2", "", {"dtype": types.INT16}), {})
    assert y == 0
