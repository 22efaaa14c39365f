# SPDX-License-Identifier: Apache-2.0
"""Mirrored boxes: a thread takes a box."""

from __future__ import annotations

from ..launch import Phase, Task, grid_of

_THREADS = 64  # a picture has few boxes


def plan(task: Task) -> list[Phase]:
    blocks = -(-task.ins[0].volumes() // (4 * _THREADS))
    return [Phase("bb_flip_all(l);", grid_of(blocks, task.n), (_THREADS, 1, 1))]
