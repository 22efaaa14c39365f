# SPDX-License-Identifier: Apache-2.0
"""Shot noise: one launch."""

from __future__ import annotations

from ..launch import Phase, Task
from ._noise import one_launch


def plan(task: Task) -> list[Phase]:
    return one_launch(task, "shot_all")
