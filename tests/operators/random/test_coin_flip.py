# SPDX-License-Identifier: Apache-2.0
"""Coin flips against SciPy."""

import pytest
from draws import check_discrete

from penstock import fn, types


@pytest.mark.parametrize(
    "kwargs, frequencies",
    [
        ({}, {0: 0.5, 1: 0.5}),
        ({"probability": 0.1, "dtype": types.BOOL}, {0: 0.9, 1: 0.1}),
        ({"probability": 1.0}, {1: 1}),
        ({"probability": 0.0, "dtype": types.UINT8}, {0: 1}),
    ],
)
def test_discrete(kwargs, frequencies):
    check_discrete("coin_flip", kwargs, frequencies)


@pytest.mark.parametrize("dtype", [types.FLOAT, types.INT64, types.UINT16])
def test_types_that_dali_refuses(dtype):
    with pytest.raises(ValueError, match="is currently not supported. Supported types are : bool, uint8, int32"):
        fn.random.coin_flip(dtype=dtype)
