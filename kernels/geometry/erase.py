# SPDX-License-Identifier: Apache-2.0
"""Regions that are filled: samples are copied in runs, of which those that meet a region are painted."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.painted import painted


def plan(task: Task) -> list[Phase]:
    return painted(task, "ErasePainter")
