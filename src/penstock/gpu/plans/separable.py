# SPDX-License-Identifier: Apache-2.0
"""Separable filters: tiles through shared memory in one launch; for volumes and long windows a launch per axis."""

from __future__ import annotations

import numpy as np

from ..launch import Phase, Task, grid_of
from ..source import c_type
from ._tiles import tiles_of

_MOST_SHARED = 64 << 10  # of all GPUs
_TILES = ((32, 128), (16, 128), (32, 64), (16, 64))  # rows and elements of a row, the best first
_UNROLLED = 33  # the longest window whose size is compiled in
_SUMS = 2  # a part of the scratch memory


def plan(task: Task) -> list[Phase]:
    args, x = task.call.args, task.ins[0]
    assert args is not None
    terms, outer, axes = int(args["terms"][0]), int(args["n_outer"][0]), int(args["n_space"][0])
    size = args["size"].reshape(-1, 3, 3)[:, :terms]
    types = f"{c_type(task.outs[0].dtype)}, {c_type(x.dtype)}"
    channels = x.stored[:, outer + axes :].prod(axis=1)
    if (size[:, :, 0] == 1).all():
        longest = 1 << max(int(size.max()) - 1, 0).bit_length()
        fixed = [int(s.flat[0]) if (s == s.flat[0]).all() else 0 for s in (size[:, :, 1], size[:, :, 2])]
        height, width = (s if s <= _UNROLLED else 0 for s in fixed)
        for rows, elements in _TILES:
            shared = 4 * _floats(size, channels, longest, rows, elements)
            if shared <= _MOST_SHARED:
                body = f"separable_tiles<{types}, {height}, {width}, {rows}, {elements}, {longest}>(l);"
                return [Phase(body, grid_of(tiles_of(x, outer, axes, rows, elements), task.n), shared=shared)]
    return _passes(task, size, types)


def _floats(size: np.ndarray, channels: np.ndarray, longest: int, rows: int, elements: int) -> int:
    """Of shared memory that a tile takes."""
    c = np.clip(channels, 1, 8)
    columns = elements // c
    pitch = ((columns + 7) // 8 * 8 + size[:, :, 2].max(axis=1)) * c + 1
    tall = rows + size[:, :, 1].max(axis=1)
    return 6 * longest + int((tall * (pitch + elements + 1)).max(initial=0))


def _passes(task: Task, size: np.ndarray, types: str) -> list[Phase]:
    x = task.ins[0]
    volumes = x.volumes()
    volume = int(volumes.max(initial=0))
    # A thread takes 4 places along the axis: of short axes some are none.
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
