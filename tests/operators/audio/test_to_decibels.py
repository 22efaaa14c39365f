# SPDX-License-Identifier: Apache-2.0
import numpy as np
from signals import spectra

from harness import op_test


def reference(x, multiplier=10.0, reference=0.0, cutoff_db=-200.0):
    if not x.size:
        return x
    x = x.astype("f8")
    largest = np.max(np.where(np.isnan(x), -np.inf, x))
    unit = reference or largest or 1
    ratio = np.maximum(np.nan_to_num(x / unit, nan=0), 10 ** (cutoff_db / multiplier))
    return (multiplier * np.log10(ratio)).astype("f4")


def odd_numbers(rng, case):
    tiny = [0, 1e-44, 1e-39, 1e-30, 0.5, 1, 3e36]
    return [np.float32(v) for v in (tiny, [np.nan, 1, -2], [0, 0, 0], [2, np.nan, 4], [])]


ARGUMENTS = [
    {},
    {"reference": 1.0},
    {"reference": 0.01, "multiplier": 20.0},
    {"cutoff_db": -20.0},
    {"cutoff_db": -60.0, "multiplier": 20.0},
    {"cutoff_db": 5.0},
]
OF_SPECTRA = [
    *ARGUMENTS,
    {"multiplier": 20.0},
    {"reference": 1e-6, "cutoff_db": -80.0},
    {"reference": 1e4, "multiplier": 3.5},
    {"cutoff_db": -90.0},
]
TestToDecibels = op_test(
    "to_decibels",
    reference,
    dtypes=("f4",),
    layouts=("ft", "tf"),
    args=OF_SPECTRA,
    make_input=spectra((257, 12), (1, 1), (0, 5), (80, 33)),
    errors=[({"refrence": 1}, TypeError, "Did you mean 'reference'")],
)
TestOddNumbers = op_test(
    "to_decibels",
    reference,
    args=[*ARGUMENTS, {"cutoff_db": -400.0}],
    dtypes=("f4",),
    layouts=("",),
    make_input=odd_numbers,
)
