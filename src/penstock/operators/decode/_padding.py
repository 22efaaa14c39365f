# SPDX-License-Identifier: Apache-2.0
"""Padding for frame numbers outside a video."""

from __future__ import annotations

import numpy as np

# Values of `pad_mode`, with aliases resolved.
PAD_MODES = {
    "none": "none",
    "constant": "constant",
    "edge": "edge",
    "repeat": "edge",
    "reflect_1001": "reflect_1001",
    "symmetric": "reflect_1001",
    "reflect_101": "reflect_101",
    "reflect": "reflect_101",
}


def padded(numbers: np.ndarray, total: np.ndarray, mode: str) -> np.ndarray:
    """Frame numbers (n, count), int32: `numbers` outside a video of `total` (n,) frames are replaced according to
    `mode`, or by -1."""
    last = total[:, None] - 1
    if mode == "edge":
        numbers = np.clip(numbers, 0, last)
    elif mode == "reflect_1001":
        numbers = numbers % (2 * total[:, None])
        numbers = np.minimum(numbers, 2 * total[:, None] - 1 - numbers)
    elif mode == "reflect_101":
        period = np.maximum(2 * last, 1)
        numbers = numbers % period
        numbers = np.minimum(numbers, 2 * last - numbers)
    numbers = np.where((numbers < 0) | (numbers > last), -1, numbers)
    return np.ascontiguousarray(numbers, "i4")
