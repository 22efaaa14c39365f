# SPDX-License-Identifier: Apache-2.0
"""What resampling needs to know: how many zeros the filter has for a quality, how values of types compare."""

import numpy as np


def lobes_of(quality: float) -> int:
    """DALI's number of zeros of the windowed sinc on either side: 3 for quality 0, 16 for 50, 64 for 100."""
    if not 0 <= quality <= 100:
        raise ValueError(f"quality takes a number from 0 to 100; got {quality}")
    return int(np.floor(0.007 * quality**2 - 0.09 * quality + 3 + 0.5))


def to_range(source: np.dtype, target: np.dtype) -> tuple[float, float]:
    """Factor and offset from the range of a type to that of another: -1 to 1 for float32, from minus the largest value
    to the largest for signed integers, from 0 to the largest for unsigned ones."""
    if source == target:
        return 1.0, 0.0
    (half, middle), (to_half, to_middle) = _range(source), _range(target)
    return to_half / half, to_middle - middle * to_half / half


def _range(dtype: np.dtype) -> tuple[float, float]:
    """Half the width of the range, and its middle."""
    if dtype.kind == "f":
        return 1.0, 0.0
    largest = float(np.iinfo(dtype).max)
    return (largest, 0.0) if dtype.kind == "i" else (largest / 2, largest / 2)
