# SPDX-License-Identifier: Apache-2.0
"""Rotations in three dimensions."""

import numpy as np

from ...core.errors import SampleErrors


def around(axis: np.ndarray, c: np.ndarray, s: np.ndarray) -> list[list[np.ndarray]]:
    """Rotation matrices by Rodrigues' formula, as rows of columns (n,). `axis` (n, 3) may have any length; `c`, `s`
    (n,): cosine and sine of the angles, whose type is used for all computations."""
    if axis.shape[1] != 3:
        raise ValueError(f"`axis` takes three values (x, y, z), got {axis.shape[1]}")
    axis = axis.astype(c.dtype)
    x, y, z = axis[:, 0], axis[:, 1], axis[:, 2]
    length = np.sqrt(x * x + y * y + z * z)
    SampleErrors.where(length == 0, lambda i: "`axis` must have a length, got [0, 0, 0]")
    x, y, z = x / length, y / length, z / length
    t = 1 - c
    return [
        [x * x + c * (1 - x * x), x * y * t - s * z, x * z * t + s * y],
        [x * y * t + s * z, y * y + c * (1 - y * y), y * z * t - s * x],
        [x * z * t - s * y, y * z * t + s * x, z * z + c * (1 - z * z)],
    ]
