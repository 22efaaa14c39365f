# SPDX-License-Identifier: Apache-2.0
"""Mirrored points: a thread takes a coordinate."""

from __future__ import annotations

from ..launch import Phase, Task, grid_of

_THREADS = 128


def plan(task: Task) -> list[Phase]:
    blocks = -(-task.ins[0].volumes() // _THREADS)
    return [Phase("coord_flip_all(l);", grid_of(blocks, task.n), (_THREADS, 1, 1))]
