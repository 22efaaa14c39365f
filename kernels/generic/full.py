# SPDX-License-Identifier: Apache-2.0
"""Arrays of one value, or a smaller array broadcast: the types are compiled in; a thread writes 16 bytes at a time."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.units import grid_of_units
from penstock.gpu.source import c_type


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    (out,), source = task.outs, int(task.call.args["from"][0])
    kind = c_type(out.dtype)
    body = f"full_constant<{kind}>(l);" if source < 0 else f"full_of<{kind}, {c_type(task.ins[source].dtype)}>(l);"
    return [Phase(body, grid_of_units(out, 16, task.n))]
