# SPDX-License-Identifier: Apache-2.0
"""Resampling of signals: a block of threads for each 256 places of an output."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.source import c_type

_BLOCK = 256  # of kernels/audio/audio_resample.cu


def plan(task: Task) -> list[Phase]:
    (out,), (x,) = task.outs, task.ins
    grid = grid_of(several_each(-(-out.shape[:, 0] // _BLOCK)), task.n)
    return [Phase(f"audio_resample_blocks<{c_type(out.dtype)}, {c_type(x.dtype)}>(l);", grid, (_BLOCK, 1, 1))]
