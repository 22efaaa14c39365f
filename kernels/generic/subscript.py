# SPDX-License-Identifier: Apache-2.0
"""Indices and slices: the groups of merged axes are compiled in."""

from __future__ import annotations

import numpy as np

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.units import grid_of_units

_RUN = 16  # bytes per thread at a time


def plan(task: Task) -> list[Phase]:
    args = task.call.args
    assert args is not None
    (out,) = task.outs
    step, bits = args["step"], 8 * out.dtype.itemsize
    grid = grid_of_units(out, _RUN, task.n)
    if not out.ndim:
        return [Phase(f"subscript_all<uint{bits}_t, 1, 1>(l);", grid)]
    extent, step = out.stored[:, -1].copy(), step[:, : out.ndim].astype("i8")
    last, begins = step[:, -1].copy(), 0
    for d in range(out.ndim - 2, -1, -1):
        n, single = out.stored[:, d], extent == 1
        if not ((n == 1) | single | (step[:, d] == last * extent) | (out.volumes() == 0)).all():
            begins |= 2 << d
            extent, single = np.ones_like(extent), np.ones_like(single)
        last = np.where(single, step[:, d], last)
        extent = extent * n
    return [Phase(f"subscript_all<uint{bits}_t, {out.ndim}, {begins | 1}>(l);", grid)]
