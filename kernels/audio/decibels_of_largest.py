# SPDX-License-Identifier: Apache-2.0
"""Finds the largest element, then computes decibels relative to it."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of, several_each

_AT_ONCE = 4096  # elements per block of threads


def plan(task: Task) -> list[Phase]:
    grid, scratch = grid_of(several_each(-(-task.outs[0].volumes() // _AT_ONCE)), task.n), 4 * task.n
    return [
        Phase("decibels_find_largest(l);", grid, scratch=scratch, zero=True),
        Phase("decibels_convert(l);", grid, scratch=scratch),
    ]
