# SPDX-License-Identifier: Apache-2.0
"""Dense filters: tiles through shared memory; small filters of one size are unrolled."""

from __future__ import annotations

import numpy as np

from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.schemes.tiles import MOST_SHARED, TILES, channels_of, elements_of_tiles, same_channels, tiles_of
from penstock.gpu.source import c_type

_MOST_WEIGHTS = 25  # of filters that are kept in registers
_SMALL_ROWS, _SMALL_ELEMENTS = 32, 256  # tile size for small filters


def plan(task: Task) -> list[Phase]:
    args, x, weights, out = task.call.args, task.ins[0], task.ins[1], task.outs[0]
    assert args is not None
    outer, axes = int(args["n_outer"][0]), int(args["n_space"][0])
    size = weights.stored[:, -2:]
    most = 1 << max(int(weights.volumes().max(initial=1)) - 1, 0).bit_length()
    channels = channels_of(x, outer, axes)
    types = f"{c_type(out.dtype)}, {c_type(x.dtype)}, {'true' if args['has_fill'][0] else 'false'}"
    small = (size == size[0]).all() and int(np.prod(size[0])) <= _MOST_WEIGHTS
    c = same_channels(x, channels)
    if small and c and weights.ndim == 2:
        height, width = (int(s) for s in size[0])
        pitch = _SMALL_ELEMENTS - 4 + -(-(4 + (width - 1) * c) // 4) * 4  # as in kernels/filter/gpu_small_filter.h
        of = f"Correlation<{types}>, {c_type(out.dtype)}, {c_type(x.dtype)}"
        body = f"correlate_small<{of}, {c}, {height}, {width}>(l);"
        grid = grid_of(several_each(tiles_of(out, outer, axes, _SMALL_ROWS, _SMALL_ELEMENTS)), task.n)
        return [Phase(body, grid, shared=4 * pitch * (_SMALL_ROWS + height - 1), resident=4)]
    for rows, elements in TILES:
        shared = 4 * (most + elements_of_tiles(size, channels, rows, elements, 1))
        if shared <= MOST_SHARED:
            height, width = size[0] if small else (0, 0)
            one = "true" if weights.ndim == 2 else "false"
            sizes = f"{same_channels(x, channels)}, {height}, {width}"
            body = f"correlate_tiles<{types}, {one}, {sizes}, {rows}, {elements}, {most}>(l);"
            grid = grid_of(several_each(tiles_of(out, outer, axes, rows, elements)), task.n)
            return [Phase(body, grid, shared=shared, resident=3)]
    return [Phase(f"correlate_places<{types}>(l);", grid_of(-(-out.volumes() // 256), task.n))]
