# SPDX-License-Identifier: Apache-2.0
"""Launches of kernels that copy samples and paint over them; see kernels/core/gpu_paint.h."""

from __future__ import annotations

from ..launch import Phase, Task, grid_of, several_each
from ..source import c_type

_THREADS, _AT_ONCE = 256, 1


def painted(task: Task, painter: str, resident: int = 5) -> list[Phase]:
    (out,), kind = task.outs, task.kind
    if out.volumes().max(initial=0) >= 1 << 31:
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    interleaved = kind.unit and kind.axis == kind.n
    c, n = (kind.c, kind.n) if interleaved else (1, max(out.ndim, 1))
    run_bytes = 16 if c % 2 == 0 else 16 * c
    blocks = -(-(out.volumes() * out.dtype.itemsize // run_bytes + 2) // (_THREADS * _AT_ONCE))
    t = c_type(out.dtype)
    body = f"paint_rows<{t}, {c}, {n}, {_THREADS}, {_AT_ONCE}, {painter}<{t}, {c}, {n}>>(l);"
    return [Phase(body, grid_of(several_each(blocks), task.n), resident=resident)]
