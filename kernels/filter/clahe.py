# SPDX-License-Identifier: Apache-2.0
"""Adaptive equalization: one launch makes the tables of all tiles, a second one changes the pixels."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of

_PIXELS = 4096  # per block, as each block copies tables first


def plan(task: Task) -> list[Phase]:
    args, x = task.call.args, task.ins[0]
    assert args is not None
    tiles = int(args["tiles"][0].prod())
    planes = 1 if args["luma"][0] else x.stored[:, 2].clip(1, 3)
    some = x.volumes() > 0
    pixels = x.stored[:, :2].prod(axis=1)
    scratch = task.n * 3 * tiles * 256
    return [
        Phase("clahe_tables(l);", grid_of(some * tiles * planes, task.n), scratch=scratch),
        Phase("clahe_apply(l);", grid_of(-(-pixels // _PIXELS), task.n), scratch=scratch),
    ]
