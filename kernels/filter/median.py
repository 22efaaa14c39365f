# SPDX-License-Identifier: Apache-2.0
"""Medians: tiles through shared memory; the window size is a compile-time constant if all samples agree."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.schemes.tiles import (
    MOST_SHARED,
    TILES,
    channels_of,
    elements_of_tiles,
    same_channels,
    same_size,
    tiles_of,
)
from penstock.gpu.source import c_type

_MOST_HELD = 49  # kMostHeld of kernels/filter/median.cu


def plan(task: Task) -> list[Phase]:
    args, x = task.call.args, task.ins[0]
    assert args is not None
    outer, size = int(args["n_outer"][0]), args["size"]
    channels = channels_of(x, outer, 2)
    height, width = same_size(size[:, 0]), same_size(size[:, 1])
    if height * width > _MOST_HELD:
        height = width = 0
    for rows, elements in TILES:
        shared = x.dtype.itemsize * elements_of_tiles(size, channels, rows, elements, 1)
        if shared <= MOST_SHARED:
            break
    in_tiles = shared <= MOST_SHARED
    sizes = f"{same_channels(x, channels)}, {height}, {width}, {rows}, {elements}"
    body = f"median_tiles<{c_type(x.dtype)}, {sizes}, {str(in_tiles).lower()}>(l);"
    grid = grid_of(several_each(tiles_of(x, outer, 2, rows, elements)), task.n)
    return [Phase(body, grid, shared=shared if in_tiles else 0)]
