# SPDX-License-Identifier: Apache-2.0
"""Parameters of resampling: size of the filter by quality, and ranges of types."""

import numpy as np


def lobes_of(quality: float) -> int:
    """Number of zeros of the windowed sinc on each side, as in DALI: 3 for quality 0, 16 for 50, 64 for 100."""
    if not 0 <= quality <= 100:
        raise ValueError(f"quality takes a number from 0 to 100; got {quality}")
    return int(np.floor(0.007 * quality**2 - 0.09 * quality + 3 + 0.5))


def to_range(source: np.dtype, target: np.dtype) -> tuple[float, float]:
    """Factor and offset that map the range of a type to that of another: -1 to 1 for float32, -max to max for signed
    integers, 0 to max for unsigned integers."""
    if source == target:
        return 1.0, 0.0
    (half, middle), (to_half, to_middle) = _range(source), _range(target)
    return to_half / half, to_middle - middle * to_half / half


def _range(dtype: np.dtype) -> tuple[float, float]:
    """Half the width of the range, and its centre."""
    if dtype.kind == "f":
        return 1.0, 0.0
    largest = float(np.iinfo(dtype).max)
    return (largest, 0.0) if dtype.kind == "i" else (largest / 2, largest / 2)
