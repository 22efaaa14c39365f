# SPDX-License-Identifier: Apache-2.0
"""Affine transform of points: a thread per point; the types and, if all samples agree, its size are compiled in."""

from __future__ import annotations

import numpy as np

from penstock.gpu.launch import Phase, Task, grid_of
from penstock.gpu.source import c_type

_THREADS = 128


def plan(task: Task) -> list[Phase]:
    (out,), (x,) = task.outs, task.ins
    rows, columns = (int(d[0]) if len(d) and (d == d[0]).all() else 0 for d in (out.shape[:, -1], x.shape[:, -1]))
    blocks = -(-out.volumes() // (np.maximum(out.shape[:, -1], 1) * _THREADS))
    body = f"coord_transform_all<{c_type(out.dtype)}, {c_type(x.dtype)}, {rows}, {columns}>(l);"
    return [Phase(body, grid_of(blocks, task.n), (_THREADS, 1, 1))]
