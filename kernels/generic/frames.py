# SPDX-License-Identifier: Apache-2.0
"""Frames in another order: large ones are copied as segments, small ones by units."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.segments import SHORTEST, segments
from penstock.gpu.schemes.units import grid_of_units, unit_of


def plan(task: Task) -> list[Phase]:
    (out,), (x,) = task.outs, task.ins
    size = x.dtype.itemsize
    frame = x.stored[:, 1:].prod(axis=1) * size
    grid = grid_of_units(out, unit := unit_of([frame]), task.n)
    if frame.sum() >= SHORTEST * task.n:
        return [segments("frames_segments", size, out.volumes() * size // frame.clip(1), frame)]
    return [Phase(f"frames_all<{unit}, {size}>(l);", grid)]
