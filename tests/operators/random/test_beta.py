# SPDX-License-Identifier: Apache-2.0
"""Numbers of the beta distribution against SciPy."""

import pytest
from draws import check_continuous
from scipy import stats

from penstock import types


@pytest.mark.parametrize(
    "kwargs, expected",
    [
        ({}, stats.beta(1, 1)),
        ({"alpha": 0.4, "beta": 0.4}, stats.beta(0.4, 0.4)),
        ({"alpha": 2.0, "beta": 5.0}, stats.beta(2, 5)),
        ({"alpha": 0.3, "beta": 20.0, "dtype": types.FLOAT64}, stats.beta(0.3, 20)),
        ({"alpha": 300.0, "beta": 200.0}, stats.beta(300, 200)),
    ],
)
def test_continuous(kwargs, expected):
    check_continuous("beta", kwargs, expected)
