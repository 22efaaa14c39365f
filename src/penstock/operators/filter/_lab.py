# SPDX-License-Identifier: Apache-2.0
"""Tables and matrices for CIE L*a*b* in kernels/filter/lab.h (IEC 61966-2-1, CIE 15, white point D65)."""

from functools import cache

import numpy as np

_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_WHITE = np.array([0.950456, 1.0, 1.088754])


def _round(x: np.ndarray, dtype: str) -> np.ndarray:
    return np.rint(x).astype(dtype)


@cache
def tables() -> np.ndarray:
    """Tables (1, 7936), uint16, in the layout of `enum LabTable`."""
    s = np.arange(256) / 255
    linear = np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)
    t = np.arange(3072) / 2040
    root = np.where(t < 0.008856, 7.787 * t + 16 / 116, np.cbrt(t))
    lightness = np.arange(256) * 100 / 255
    f = np.where(lightness <= 8, 7.787 * (lightness / 903.3) + 16 / 116, (lightness + 16) / 116)
    y = np.where(lightness <= 8, lightness / 903.3, f**3)
    v = np.arange(4096) / 4096
    gamma = np.where(v <= 0.0031308, v * 12.92, 1.055 * v ** (1 / 2.4) - 0.055)
    parts = linear * 2040, root * 32768, y * 16384, f * 16384, gamma * 255
    return np.concatenate([_round(p, "u2") for p in parts])[None]


@cache
def matrices() -> tuple[np.ndarray, np.ndarray]:
    """Matrices, (9,) int32 each, times 4096: from linear RGB to XYZ relative to white, and back."""
    backward = np.linalg.inv(_XYZ) * _WHITE
    return _round(_XYZ / _WHITE[:, None] * 4096, "i4").ravel(), _round(backward * 4096, "i4").ravel()
