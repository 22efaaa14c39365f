# SPDX-License-Identifier: Apache-2.0
"""Reductions; see penstock/gpu/schemes/reductions.py."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.reductions import plan_reduction


def plan(task: Task) -> list[Phase]:
    return plan_reduction(task)
