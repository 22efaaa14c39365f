# SPDX-License-Identifier: Apache-2.0
"""One-hot encoding: the types are compiled in."""

from __future__ import annotations

from ..launch import Phase, Task
from ..source import c_type
from ._units import grid_of_units


def plan(task: Task) -> list[Phase]:
    (out,), (x,) = task.outs, task.ins
    body = f"one_hot_all<{c_type(out.dtype)}, {c_type(x.dtype)}>(l);"
    return [Phase(body, grid_of_units(out, out.dtype.itemsize, task.n))]
