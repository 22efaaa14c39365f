# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample


def reference(x, shape=(), layout=None):
    return np.broadcast_to(x, [int(n) for n in np.atleast_1d(shape)]).copy()


def of(*shape):
    return lambda rng, case: [rng.integers(0, 99, shape).astype(case.dtype) for _ in range(4)]


DTYPES = ("u1", "i4", "f4", "f8", "?")
TestScalar = op_test(
    "full",
    reference,
    DTYPES,
    ("",),
    args=[{"shape": [2, 3]}, {"shape": []}, {"shape": [5], "layout": "X"}],
    make_input=of(),
)
TestRow = op_test(
    "full",
    reference,
    DTYPES,
    ("",),
    args=[
        {"shape": [2, 3]},
        {"shape": [4, 1, 3]},
        {"shape": [0, 3], "layout": "HW"},
        {"shape": per_sample(3, 4, (2,), "i4")},
    ],
    make_input=of(3),
    errors=[
        ({"shape": [2, 2]}, RuntimeError, r"values of shape \[3\] can't fill an array of shape \[2, 2\]"),
        ({"shape": [2, 3], "layout": "HWC"}, RuntimeError, "3 names; the output has 2 axes"),
        ({"shape": [-2, 3]}, RuntimeError, "can't be negative"),
    ],
)
TestBlock = op_test(
    "full", reference, DTYPES, ("",), args=[{"shape": [4, 2, 3]}, {"shape": [5, 4, 2, 3]}], make_input=of(4, 1, 3)
)
