# SPDX-License-Identifier: Apache-2.0
"""Adds noise to signals: a block of threads per signal first computes its gain."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of, several_each

_SUMMING, _AT_ONCE = 512, 2048


def plan(task: Task) -> list[Phase]:
    n, volumes = task.n, task.ins[0].volumes()
    gains = f"add_noise_gains<{_SUMMING}>(l);"
    return [
        Phase(gains, (1, min(n, 65535), 1), (_SUMMING, 1, 1), scratch=4 * n),
        Phase("add_noise_all(l);", grid_of(several_each(-(-volumes // _AT_ONCE)), n), scratch=4 * n),
    ]
