# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation: a launch per step; steps that depend on the whole image count its values first."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of

_PIXELS = 1024  # per block


def plan(task: Task) -> list[Phase]:
    args, x = task.call.args, task.ins[0]
    assert args is not None
    first = args[0]
    steps, entries = int(first["n_steps"]), int(first["channels"]) * 256
    buffers = min(steps - 1, 2)
    scratch = task.n * (buffers * int(first["image_bytes"]) + steps * entries * 5)
    volumes, pixels = x.volumes(), x.stored[:, :2].prod(axis=1)
    phases, counted = [], int(first["counted"])
    if counted:
        clear = min(-(-task.n * steps * entries // 1024), 1024)
        phases.append(Phase("augment_clear(l);", (clear, 1, 1), scratch=scratch))
    for i in range(steps):
        if counted >> i & 1:
            blocks = grid_of(-(-volumes // (16 * _PIXELS)), task.n)
            phases.append(Phase(f"augment_count(l, {i});", blocks, scratch=scratch))
            phases.append(Phase(f"augment_tables(l, {i});", (1, min(task.n, 65535), 1), scratch=scratch))
        phases.append(Phase(f"augment_apply(l, {i});", grid_of(-(-pixels // _PIXELS), task.n), scratch=scratch))
    return phases
