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
        found = np.sqrt(np.divide(np.sum(x.astype("f8") ** 2, axis=along, keepdims=keep_dims), count_of(x, along)))
    return (np.trunc(np.nan_to_num(found)) if np.dtype(to).kind in "iu" else found).astype(to)


WRAPS = "DALI sums in the type of the output, which overflows"
FLOATS = "DALI computes integers in float32, which has not digits enough"
SQUARES = "DALI squares 16-bit integers in 32 bits, which overflows"
TestRMS = op_test(
    "reductions.rms",
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
        "dtype=UINT32": WRAPS,
        "dtype=INT32": WRAPS,
        "dtype=UINT64": FLOATS,
        "dtype=INT64": FLOATS,
        "uint16-HWC": SQUARES,
    },
    errors=[*ERRORS, ({"dtype": types.UINT64}, RuntimeError, "type uint64 is not supported for input type uint8")],
)


def test_bytes_do_not_overflow():
    ((y,),) = run("reductions.rms", [np.full(1000, 200, "u1")], Case("u1", "", {"dtype": types.UINT8}), {})
    assert y == 200
