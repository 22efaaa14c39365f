# SPDX-License-Identifier: Apache-2.0
"""Erosion and dilation: a launch per iteration, by tiles in shared memory; two launches for large rectangles."""

from __future__ import annotations

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


def plan(task: Task) -> list[Phase]:
    args, x = task.call.args, task.ins[0]
    assert args is not None
    # For a sample with fewer iterations, further iterations change nothing.
    outer, iterations, size = int(args["n_outer"][0]), int(args["iterations"].max()), args["size"]
    width = x.dtype.itemsize
    types = f"{c_type(x.dtype)}, {'true' if args['dilates'][0] else 'false'}"
    channels = channels_of(x, outer, 2)
    for rows, elements in TILES:
        shared = width * elements_of_tiles(size, channels, rows, elements) + 64
        if shared <= MOST_SHARED:
            break
    else:
        volume = bound_of(x.volumes())
        scratch = 2 * task.n * volume * width
        grid, ends = grid_of(-(-x.volumes() // 1024), task.n), [-1, *[0] * (iterations - 1), -1]
        phases = []
        for source, to in zip(ends, ends[1:]):
            phases.append(Phase(f"morphology_pass<{types}, 1, {source}, 1>(l, {volume});", grid, scratch=scratch))
            phases.append(Phase(f"morphology_pass<{types}, 0, 1, {to}>(l, {volume});", grid, scratch=scratch))
        return phases
    grid = grid_of(several_each(tiles_of(x, outer, 2, rows, elements)), task.n)
    volume = bound_of(x.volumes()) if iterations > 1 else 0
    scratch = 2 * task.n * volume * width
    what = (
        f"{types}, {same_channels(x, channels)}, {same_size(size[:, 0])}, {same_size(size[:, 1])}, {rows}, {elements}"
    )
    ends = [-1, *(i % 2 for i in range(iterations - 1)), -1]
    return [
        Phase(f"morphology_tiles<{what}, {a}, {b}>(l, {volume});", grid, shared=shared, scratch=scratch)
        for a, b in zip(ends, ends[1:])
    ]
