# SPDX-License-Identifier: Apache-2.0
"""Encoding of boxes for SSD: first the nearest anchor of each box, a block per box; then each anchor, a thread each."""

from __future__ import annotations

import numpy as np

from penstock.gpu.launch import Phase, Task, grid_of
from penstock.gpu.schemes.bounds import bound_of

_THREADS = 128


def plan(task: Task) -> list[Phase]:
    boxes = task.ins[0].volumes() // 4
    most, n = bound_of(boxes), task.n  # a small number of distinct values, as each is compiled separately
    scratch = 4 * most * n
    anchors = np.full(n, -(-int(task.outs[0].shape[0, 0]) // _THREADS), "i8")
    phases = [
        Phase(f"box_encoder_nearest<{_THREADS}>(l, {most});", grid_of(boxes, n), (_THREADS, 1, 1), scratch=scratch),
        Phase(f"box_encoder_encode(l, {most});", grid_of(anchors, n), (_THREADS, 1, 1), scratch=scratch),
    ]
    return phases if boxes.any() else phases[1:]
