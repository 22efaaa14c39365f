# SPDX-License-Identifier: Apache-2.0
"""Numbers that are compiled in or say how much memory is needed, and suit many batches."""

from __future__ import annotations

import numpy as np

from ...core.traced import plain


def bound_of(x: np.ndarray) -> int:
    """A power of two that none of these numbers exceeds, so that ragged batches share what is compiled."""
    power = 1 << max(int(plain(x).max(initial=1)) - 1, 0).bit_length()
    if (x > power).any():  # which is checked for later batches
        raise ValueError("[internal error] a number is above its bound")
    return power
