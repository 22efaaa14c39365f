# SPDX-License-Identifier: Apache-2.0
"""How many tiles samples have; see kernels/filter/gpu_tile.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec

_MOST_CHANNELS = 8  # side by side in a tile


def tiles_of(x: Spec, outer: int, axes: int, rows: int, elements: int) -> np.ndarray:
    """(n,) tiles of samples with `outer` axes of images and `axes` of space, the last of which are H and W."""
    shape = x.stored
    channels = shape[:, outer + axes :].prod(axis=1)
    width = shape[:, outer + axes - 1]
    height = shape[:, outer + axes - 2] if axes > 1 else np.ones_like(width)
    above = shape[:, : outer + max(axes - 2, 0)].prod(axis=1)
    together = np.clip(channels, 1, _MOST_CHANNELS)
    return above * -(-height // rows) * -(-width // (elements // together)) * -(-channels // together)
