# SPDX-License-Identifier: Apache-2.0
"""Uniform numbers against SciPy."""

import numpy as np
import pytest
from draws import check_continuous, check_discrete, draw
from scipy import stats

from penstock import types


@pytest.mark.parametrize(
    "kwargs, expected",
    [
        ({}, stats.uniform(-1, 2)),
        ({"range": (3.0, 4.5)}, stats.uniform(3, 1.5)),
        ({"range": (3.0, 4.5), "dtype": types.FLOAT64}, stats.uniform(3, 1.5)),
    ],
)
def test_continuous(kwargs, expected):
    check_continuous("uniform", kwargs, expected)


@pytest.mark.parametrize(
    "kwargs, frequencies",
    [
        ({"values": [1.0, 2.5, -7.0]}, {1: 1 / 3, 2.5: 1 / 3, -7: 1 / 3}),
        # Real numbers are rounded: the ends of the range are half as frequent.
        ({"range": (0.0, 2.0), "dtype": types.INT32}, {0: 0.25, 1: 0.5, 2: 0.25}),
        ({"range": (-1.0, 2.0), "dtype": types.INT8}, {-1: 1 / 6, 0: 1 / 3, 1: 1 / 3, 2: 1 / 6}),
        ({"range": (0.0, 2.0), "dtype": types.INT64}, {0: 0.25, 1: 0.5, 2: 0.25}),
        ({"range": (-1.0, 1.0), "dtype": types.UINT16}, {0: 0.75, 1: 0.25}),
        ({"range": (254.0, 256.0), "dtype": types.UINT8}, {254: 0.25, 255: 0.75}),
    ],
)
def test_discrete(kwargs, frequencies):
    check_discrete("uniform", kwargs, frequencies)


def test_floats_stay_below_the_upper_end():
    x = draw("uniform", 1, shape=[1 << 22], range=(16777214.0, 16777216.0)).ravel()
    assert set(np.unique(x)) == {16777214, 16777215}
    assert draw("uniform", 1, shape=[1 << 22], range=(0.0, 1.0)).max() < 1
