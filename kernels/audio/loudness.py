# SPDX-License-Identifier: Apache-2.0
"""Loudness: threads filter steps of 100 ms; a thread per signal computes the gain; then it is applied."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.schemes.bounds import bound_of

_SHORTEST_STEP = 100  # samples in 100 ms at the lowest rate
_FILTERING, _SCALED_AT_ONCE = 64, 2048


def plan(task: Task) -> list[Phase]:
    volumes = task.ins[0].volumes()
    most, n = bound_of(volumes) // _SHORTEST_STEP + 1, task.n
    scratch = 8 * n * (1 + most)
    threads = (_FILTERING, 1, 1)
    return [
        # A thread filters a step of 1600 samples at 16 kHz.
        Phase(f"loudness_steps(l, {most});", grid_of(volumes // (1600 * _FILTERING) + 1, n), threads, scratch=scratch),
        Phase(f"loudness_gains(l, {most});", (min(-(-n // _FILTERING), 1024), 1, 1), threads, scratch=scratch),
        Phase("loudness_scale(l);", grid_of(several_each(-(-volumes // _SCALED_AT_ONCE)), n), scratch=scratch),
    ]
