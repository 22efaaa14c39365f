# SPDX-License-Identifier: Apache-2.0
"""Filling of regions: samples are copied in runs; elements in regions are replaced."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.painted import painted


def plan(task: Task) -> list[Phase]:
    return painted(task, "ErasePainter")
