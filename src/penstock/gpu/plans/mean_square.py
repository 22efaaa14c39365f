# SPDX-License-Identifier: Apache-2.0
"""Reductions; see _reductions.py."""

from __future__ import annotations

from ..launch import Phase, Task
from ._reductions import plan_reduction


def plan(task: Task) -> list[Phase]:
    return plan_reduction(task)
