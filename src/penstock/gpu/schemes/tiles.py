# SPDX-License-Identifier: Apache-2.0
"""Divides samples into tiles in shared memory; see kernels/filter/gpu_tile.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec

MOST_SHARED = 64 << 10  # bytes that every GPU has
TILES = ((32, 128), (16, 128), (32, 64), (16, 64))  # rows and elements per row, best first
_UNROLLED = 33  # the longest window whose size is compiled in
_MOST_CHANNELS = 8  # interleaved in


def channels_of(x: Spec, outer: int, axes: int) -> np.ndarray:
    """Channels (n,) of samples with `outer` axes of images and `axes` spatial axes, the last of which are H and W."""
    return x.stored[:, outer + axes :].prod(axis=1)


def tiles_of(x: Spec, outer: int, axes: int, rows: int, elements: int) -> np.ndarray:
    """Number of tiles (n,) per sample."""
    shape, channels = x.stored, channels_of(x, outer, axes)
    width = shape[:, outer + axes - 1]
    height = shape[:, outer + axes - 2] if axes > 1 else np.ones_like(width)
    above = shape[:, : outer + max(axes - 2, 0)].prod(axis=1)
    together = np.clip(channels, 1, _MOST_CHANNELS)
    return above * -(-height // rows) * -(-width // (elements // together)) * -(-channels // together)


def elements_of_tiles(size: np.ndarray, channels: np.ndarray, rows: int, elements: int, passes: int = 2) -> int:
    """Maximum elements of a tile including its surrounding window of `size` (n, 2); with two passes, also the output of
    the first pass."""
    c = np.clip(channels, 1, _MOST_CHANNELS)
    across = (-(-(elements // c) // 8) * 8 + size[:, 1]) * c + 8
    if passes == 2:
        across = across + elements + 8
    return int(((rows + size[:, 0]) * across).max(initial=0))


def same_size(size: np.ndarray) -> int:
    """The size of all windows if it should be compiled in, else 0."""
    first = size[(0,) * size.ndim]
    return int(first) if (size == first).all() and first <= _UNROLLED else 0


def same_channels(x: Spec, channels: np.ndarray) -> int:
    """The channels of all non-empty samples if the number should be compiled in, else 0."""
    some = channels[x.volumes() > 0]
    return int(some[0]) if len(some) and some[0] <= 4 and (some == some[0]).all() else 0
