# SPDX-License-Identifier: Apache-2.0
import numpy as np
from scipy.fft import dct

from harness import op_test


def reference(x, axis=0, n_mfcc=20, dct_type=2, normalize=False, lifter=0.0):
    """SciPy's transforms have a factor of 2 if they are not orthogonal."""
    out = dct(x.astype("f8"), dct_type, axis=axis, norm="ortho" if normalize else None) * (1 if normalize else 0.5)
    out = np.moveaxis(out, axis, -1)[..., :n_mfcc]
    if lifter:
        out = out * (1 + lifter / 2 * np.sin(np.pi * (1 + np.arange(out.shape[-1])) / lifter))
    return np.moveaxis(out, -1, axis).astype("f4")


def noise(*shapes):
    return lambda rng, case: [(rng.standard_normal(s) * 40 - 30).astype("f4") for s in shapes]


TRANSFORMS = [{"dct_type": t, "normalize": n} for t in (1, 2, 3, 4) for n in (False, True) if t > 1 or not n]
TestTransforms = op_test(
    "mfcc",
    reference,
    dtypes=("f4",),
    layouts=("ft",),
    args=[{}, *TRANSFORMS, {"n_mfcc": 3}, {"n_mfcc": 100, "lifter": 22.0}, {"lifter": 7.5}],
    make_input=noise((40, 100), (2, 3), (80, 17), (13, 0)),
    ulps=16,
    errors=[
        ({"dct_type": 5}, ValueError, "dct_type takes 1 to 4; got 5"),
        ({"dct_type": 1, "normalize": True}, ValueError, "not possible for dct_type=1"),
        ({"n_mfcc": 0}, ValueError, "n_mfcc takes a positive number"),
        ({"axis": -1}, ValueError, "axis takes a number from 0 on"),
        ({"axis": 2}, RuntimeError, "axis 2 is out of range for an input of 2 axes"),
    ],
)
TestAxes = op_test(
    "mfcc",
    reference,
    dtypes=("f4",),
    layouts=("ctf",),
    args=[{"axis": a, "n_mfcc": 4, **more} for a in range(3) for more in ({}, {"dct_type": 3}, {"lifter": 9.0})],
    make_input=noise((2, 9, 40), (5, 3, 8)),
    ulps=16,
)
