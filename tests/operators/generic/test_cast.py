# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest

from harness import Case, op_test, run
from penstock import types

INTEGERS = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")
FLOATS = ("f2", "f4", "f8")


def reference(x, dtype):
    """Uses Python's unlimited integers and NumPy's conversion to floats."""
    out = np.dtype(types.to_numpy_type(dtype))
    if out.kind == "f":
        with np.errstate(over="ignore"):
            return x.astype(out)
    if x.dtype.kind == "f":
        wide = x.astype("f8")
        whole = [0 if np.isnan(v) else v if np.isinf(v) else round_half_away(v) for v in wide.flat]
        if out.kind == "b":
            whole = [np.isnan(v) or w != 0 for v, w in zip(wide.flat, whole)]
    else:
        whole = [int(v) for v in x.flat]
    if out.kind == "b":
        return np.array([w != 0 for w in whole], bool).reshape(x.shape)
    lo, hi = np.iinfo(out).min, np.iinfo(out).max
    return np.array([int(min(max(w, lo), hi)) for w in whole], out).reshape(x.shape)


def round_half_away(v):
    rest = math.modf(v)[0]
    return int(v) + (rest >= 0.5) - (rest <= -0.5)


def make_input(rng, case):
    """Values all over the range, around 0, around the ends of every integer type, and the special ones."""
    dtype = np.dtype(case.dtype)
    edges = [s * (2**b + d) for b in (0, 7, 8, 15, 16, 31, 32, 63, 64) for d in (-2, -1, 0, 1, 2) for s in (1, -1)]
    if dtype.kind == "b":
        special = [0, 1]
    elif dtype.kind in "iu":
        special = [v for v in edges if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max]
    else:
        small = [0.0, 0.25, 0.5, 0.49999997, 0.75, 1.5, 2.5, 3.4999998, 254.5, 255.4999, 32767.5, 65519.9, 65535.5]
        below = [np.nextafter(np.float64(2.0**b), 0) for b in (31, 32, 63, 64)]
        special = [*edges, *small, *below, *(-v for v in (*small, *below)), np.inf, -np.inf]
    with np.errstate(over="ignore"):
        special = np.array(special, "f8" if dtype.kind == "f" else object).astype(dtype)
        everywhere = rng.integers(0, 256, 8 * 1000, "u1").view(dtype if dtype.kind != "b" else "u1")
        if dtype.kind == "f":
            everywhere = np.concatenate([rng.uniform(-300, 300, 500), rng.normal(0, 2.0**20, 500)]).astype(dtype)
        if dtype.kind == "b":
            everywhere = everywhere > 99
    return [special, everywhere[:999], everywhere[:0], everywhere[5:6], everywhere[:64].reshape(2, 32)[:, 0].copy()]


TestCast = op_test(
    "cast",
    reference,
    dtypes=(*INTEGERS, *FLOATS, "?"),
    layouts=("",),
    args=[{"dtype": types.DALIDataType(i)} for i in range(12)],
    ulps=0,
    make_input=make_input,
    errors=[
        ({"dtyp": types.UINT8}, TypeError, "Did you mean 'dtype'"),
        ({"dtype": types.STRING}, TypeError, "has no NumPy equivalent"),
    ],
)
TestLayouts = op_test(
    "cast", reference, dtypes=("u1", "f4"), layouts=("HWC", "FHWC", "CHW"), args=[{"dtype": types.INT16}]
)


@pytest.mark.parametrize("dtype", FLOATS)
def test_not_a_number(dtype):
    x = np.full(100, np.nan, dtype)
    for i in range(11):
        ((y,),) = run("cast", [x], Case(dtype, "", {"dtype": types.DALIDataType(i)}), {})
        assert np.isnan(y).all() if y.dtype.kind == "f" else not y.any()
    ((y,),) = run("cast", [x], Case(dtype, "", {"dtype": types.BOOL}), {})
    assert y.all()
