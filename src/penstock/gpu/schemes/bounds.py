# SPDX-License-Identifier: Apache-2.0
"""Upper bounds, for compiled-in values and memory sizes, that are valid for many batches."""

from __future__ import annotations

import numpy as np

from ...core.traced import plain


def bound_of(x: np.ndarray) -> int:
    """A power of two that is at least the maximum of x, so that ragged batches can share compiled code."""
    power = 1 << max(int(plain(x).max(initial=1)) - 1, 0).bit_length()
    if (x > power).any():  # this check is repeated for later batches
        raise ValueError("[internal error] a number is above its bound")
    return power
