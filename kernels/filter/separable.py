# SPDX-License-Identifier: Apache-2.0
"""Separable filters: tiles through shared memory in one launch; for volumes and long windows a launch per axis."""

from __future__ import annotations

import numpy as np

from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.schemes.bounds import bound_of
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

_SUMS = 2  # the part of the scratch memory for sums


def plan(task: Task) -> list[Phase]:
    args, x = task.call.args, task.ins[0]
    assert args is not None
    terms, outer, axes = int(args["terms"][0]), int(args["n_outer"][0]), int(args["n_space"][0])
    size = args["size"].reshape(-1, 3, 3)[:, :terms]
    types = f"{c_type(task.outs[0].dtype)}, {c_type(x.dtype)}"
    if (size[:, :, 0] == 1).all():
        longest = 1 << max(int(size.max()) - 1, 0).bit_length()
        most, channels = size[:, :, 1:].max(axis=1), channels_of(x, outer, axes)
        for rows, elements in TILES:
            shared = 4 * (6 * longest + elements_of_tiles(most, channels, rows, elements))
            if shared <= MOST_SHARED:
                one = "true" if terms == 1 else "false"
                sizes = f"{same_channels(x, channels)}, {same_size(size[:, :, 1])}, {same_size(size[:, :, 2])}"
                body = f"separable_tiles<{types}, {one}, {sizes}, {rows}, {elements}, {longest}>(l);"
                grid = grid_of(several_each(tiles_of(x, outer, axes, rows, elements)), task.n)
                return [Phase(body, grid, shared=shared, resident=3)]
    return _passes(task, size, types)


def _passes(task: Task, size: np.ndarray, types: str) -> list[Phase]:
    x = task.ins[0]
    volumes = x.volumes()
    volume = bound_of(volumes)
    # A thread takes 4 places along the axis, fewer at its end.
    grid = grid_of(-(-volumes // 256), task.n)
    phases, terms = [], size.shape[1]
    for t in range(terms):
        source = -1
        for axis in (0, 2, 1):
            if axis == 0 and (size[:, t, 0] == 1).all():
                continue
            to = {0: 1, 2: 0, 1: _SUMS}[axis]
            if axis == 1 and t == terms - 1:
                to = -1
            body = f"separable_pass<{axis}, {t}, {source}, {to}, {types}>(l, {volume});"
            phases.append(Phase(body, grid, scratch=task.n * 3 * volume * 4))
            source = to
    return phases
