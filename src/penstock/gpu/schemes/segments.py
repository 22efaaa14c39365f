# SPDX-License-Identifier: Apache-2.0
"""Distributes copies of long pieces of memory over threads; see kernels/core/gpu_segments.h."""

from __future__ import annotations

import numpy as np

from ...core.traced import plain
from ..access import threads_of_row
from ..launch import Phase, grid_of

SHORTEST = 64  # bytes; with shorter pieces, threads that share a piece would mostly be idle
_THREADS, _ROUNDS = 256, 4
_WAVE, _MOST_ROUNDS = 132 * 4, 16  # blocks that run on a large GPU at once


def few_blocks(blocks: np.ndarray) -> np.ndarray:
    """Reduces the number of blocks: copies are fastest with few more blocks than run at once, each doing many
    rounds."""
    blocks = plain(blocks)
    rounds = min(max(int(blocks.sum()) // (2 * _WAVE), 1), _MOST_ROUNDS)
    return -(-blocks // rounds)


def segments(name: str, size: int, counts: np.ndarray, longest: np.ndarray, *more: int) -> Phase:
    """The launch of `name`<T, `more`.., partition>: samples have `counts` (n,) pieces of up to `longest` (n,) bytes, of
    elements of `size` bytes."""
    counts, longest = plain(counts), plain(longest)  # the partition affects only speed
    blocks = longest // 16 + 2
    mean = int(np.average(blocks, weights=np.maximum(counts, 1)))
    g = threads_of_row(mean)
    u = max(1, min(3, -(-mean // g)))
    piece = _ROUNDS * u * g
    items = counts * (longest // 16 // piece + 1)
    shared = ", ".join(map(str, (*more, g, _THREADS, u, piece)))
    body = f"{name}<uint{8 * size}_t, {shared}>(l);"
    return Phase(body, grid_of(few_blocks(-(-items * g // _THREADS)), len(counts)), resident=4)
