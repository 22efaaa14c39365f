# SPDX-License-Identifier: Apache-2.0
import numpy as np
from axes_cases import ERRORS, NO_AXES, axes_of, count_of, photographs, shaped_input, shapes

from harness import Case, op_test, run
from penstock import types


def reference(x, axes=None, axis_names=None, keep_dims=False, dtype=types.FLOAT):
    """Computed in float64. Integers are rounded towards 0."""
    to = types.to_numpy_type(dtype)
    along = axes_of(x.ndim, axes, axis_names)
    with np.errstate(invalid="ignore"):
        found = np.divide(np.sum(x.astype("f8") ** 2, axis=along, keepdims=keep_dims), count_of(x, along))
    return (np.trunc(np.nan_to_num(found)) if np.dtype(to).kind in "iu" else found).astype(to)


FLOATS = "DALI computes integers in float32, which has not digits enough"
SQUARES = "DALI squares 16-bit integers in 32 bits, which overflows"
TestMeanSquare = op_test(
    "reductions.mean_square",
    reference,
    cases=[
        *photographs(
            args=[
                (("u1", "f4"), NO_AXES),
                (("u1", "u2", "u4", "u8"), {"dtype": types.UINT64, "axes": [0]}),
                (("i1", "i2", "i4", "i8"), {"dtype": types.INT64, "axes": [2, 1]}),
            ]
        ),
        *shapes(),
    ],
    make_input=shaped_input,
    dali_differs={"dtype=UINT64": FLOATS, "dtype=INT64": FLOATS, "uint16-HWC": SQUARES},
    errors=[*ERRORS, ({"dtype": types.UINT8}, RuntimeError, "supported: float32, uint64")],
)


def test_large_squares():
    ((y,),) = run("reductions.mean_square", [np.full(3, 2**62, "i8")], Case("i8", "", {}), {})
    assert y == 2.0**124
    ((y,),) = run("reductions.mean_square", [np.full((4, 100_000), 255, "u1")], Case("u1", "", {"axes": [1]}), {})
    assert (y == 255**2).all()
