# SPDX-License-Identifier: Apache-2.0
"""Normal numbers against SciPy."""

import pytest
from draws import check_continuous, check_discrete
from scipy import stats

from penstock import types


@pytest.mark.parametrize(
    "kwargs, expected",
    [
        ({}, stats.norm()),
        ({"mean": -7.0, "stddev": 0.25}, stats.norm(-7, 0.25)),
        ({"mean": 100.0, "stddev": 3.0, "dtype": types.FLOAT64}, stats.norm(100, 3)),
    ],
)
def test_continuous(kwargs, expected):
    check_continuous("normal", kwargs, expected)


@pytest.mark.parametrize(
    "kwargs, frequencies",
    [
        (
            {"dtype": types.UINT8},
            {i: stats.norm.cdf(i + 0.5) - (i and stats.norm.cdf(i - 0.5)) for i in range(5)},
        ),
    ],
)
def test_discrete(kwargs, frequencies):
    check_discrete("normal", kwargs, frequencies)
