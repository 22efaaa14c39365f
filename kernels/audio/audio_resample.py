# SPDX-License-Identifier: Apache-2.0
"""Resamples signals: a block of threads computes 256 output positions of several samples."""

from __future__ import annotations

import numpy as np

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.schemes.bounds import bound_of
from penstock.gpu.source import c_type

_BLOCK, _BLOCKS, _TAPS = 256, 4, 16  # of kernels/audio/audio_resample.cu
_SIGNALS, _MOST_SHARED = 8, 32 << 10


def plan(task: Task) -> list[Phase]:
    (out,), (x,), args = task.outs, task.ins, task.call.args
    assert args is not None
    rates = args["in_rate"], args["out_rate"]
    scale = rates[0] / np.maximum(rates[1], 1e-30)
    # A block's input, and the filter at both ends; with antialiasing, filters are `scale` times as wide.
    span = scale * _BLOCK + 2 * (args["lobes"] * np.maximum(scale, 1)) + 2 * _TAPS
    room = bound_of(np.minimum(span, 1 << 30).astype("i8"))
    signals = _SIGNALS if all((plain(r) == plain(r)[0]).all() for r in rates) else 1
    while signals > 1 and 4 * signals * room > _MOST_SHARED:
        signals //= 2
    if 4 * room > _MOST_SHARED:
        room = 0
    if signals > 1 and not all((r == r[0]).all() for r in rates):  # also checked for later batches
        raise ValueError("[internal error] rates differ")
    blocks = -(-plain(out.shape[:, 0]) // (_BLOCK * _BLOCKS))
    rows = -(-task.n // signals)
    width = grid_of(several_each(np.full(rows, blocks.max(initial=1))), rows)
    body = f"audio_resample_blocks<{c_type(out.dtype)}, {c_type(x.dtype)}, {signals}, {room}>(l);"
    return [Phase(body, width, (_BLOCK, 1, 1), shared=4 * signals * room)]
