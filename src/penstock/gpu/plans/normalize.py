# SPDX-License-Identifier: Apache-2.0
"""Normalisation: what is not given is summed first, in parts where there are few parameters."""

from __future__ import annotations

from ..launch import Phase, Task
from ._groups import grids, most_parameters, scratch_of

_COMPUTED = 0


def plan(task: Task) -> list[Phase]:
    args = task.call.args
    assert args is not None
    x, reduced = task.ins[0], args["reduced"][0]
    most = most_parameters(x, reduced)
    sums, parameters, elements = grids(x, reduced, most)
    if not most:
        return [Phase("normalize_alone<To0::T, From0::T>(l);", parameters)]
    scratch, phases = scratch_of(most, task.n), []
    if args["mean_origin"][0] == _COMPUTED:
        phases.append(Phase(f"normalize_sums<From0::T, {most}>(l);", sums, scratch=scratch))
    if args["stddev_origin"][0] == _COMPUTED:
        phases.append(Phase(f"normalize_squares<From0::T, {most}>(l);", sums, scratch=scratch))
    phases.append(Phase(f"normalize_finish<From0::T, {most}>(l);", parameters, scratch=scratch))
    phases.append(Phase(f"normalize_apply<To0::T, From0::T, {most}>(l);", elements, scratch=scratch))
    return phases
