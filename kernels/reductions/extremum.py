# SPDX-License-Identifier: Apache-2.0
"""Smallest and largest elements; see penstock/gpu/schemes/reductions.py."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.reductions import plan_reduction


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    return plan_reduction(task, "GreatestJob" if task.call.args["largest"][0] else "LeastJob")
