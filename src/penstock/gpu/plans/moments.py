# SPDX-License-Identifier: Apache-2.0
"""Means and sums of squares: one launch where there are many of them, else parts, their parts and their totals."""

from __future__ import annotations

from ..launch import Phase, Task
from ._groups import grids, most_parameters, scratch_of


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    x, reduced = task.ins[0], task.call.args["reduced"][0]
    most = most_parameters(x, reduced)
    sums, parameters, _ = grids(x, reduced, most)
    if not most:
        return [Phase("moments_alone<From0::T>(l);", parameters)]
    scratch = scratch_of(most, task.n)
    return [
        Phase(f"moments_sums<From0::T, {most}>(l);", sums, scratch=scratch),
        Phase(f"moments_squares<From0::T, {most}>(l);", sums, scratch=scratch),
        Phase(f"moments_finish<{most}>(l);", parameters, scratch=scratch),
    ]
