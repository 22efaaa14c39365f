# SPDX-License-Identifier: Apache-2.0
"""LZ4 chunks, each decompressed by a warp; the size of the recent output kept in shared memory is compiled in."""

from __future__ import annotations

import numpy as np

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task, grid_of

_WARP, _INPUT = 32, 4096  # threads; bytes of shared memory for input: 2 * kHalf of kernels/decode/lz4_chunks.cu
_MULTIPROCESSORS = 132  # of a large GPU
_WINDOWS = {3: 32 << 10, 6: 16 << 10, 12: 8 << 10}  # bytes, by the most chunks per multiprocessor
_SMALLEST = 4 << 10


def plan(task: Task) -> list[Phase]:
    args = task.call.args
    assert args is not None
    chunks = np.maximum(plain(args["chunks"]), 1)
    each = int(chunks.sum()) / _MULTIPROCESSORS
    window = next((size for most, size in _WINDOWS.items() if each <= most), _SMALLEST)
    return [Phase(f"lz4_chunks_of<{window}>(l);", grid_of(chunks, task.n), (_WARP, 1, 1), window + _INPUT)]
