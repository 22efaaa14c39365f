# SPDX-License-Identifier: Apache-2.0
"""Squares on a grid: samples are copied in runs of pixels, in which masked pixels are set to zero."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.painted import painted


def plan(task: Task) -> list[Phase]:
    return painted(task, "GridMaskPainter", resident=4)
