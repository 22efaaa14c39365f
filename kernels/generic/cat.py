# SPDX-License-Identifier: Apache-2.0
"""Joining: short pieces of the same sizes in all samples are interleaved by threads with compile-time sizes, long ones
are copied as segments; the rest is copied by units."""

from __future__ import annotations

import math

import numpy as np

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task, grid_of
from penstock.gpu.schemes.segments import SHORTEST, few_blocks, segments
from penstock.gpu.schemes.units import grid_of_units, unit_of

_MOST_OF_ROW, _MOST_AT_ONCE, _THREADS = 32, 160, 256  # bytes of a row of short pieces, and per thread


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    (out,), axis, size = task.outs, int(task.call.args["axis"][0]), task.outs[0].dtype.itemsize
    pieces = np.stack([x.stored[:, axis:].prod(axis=1) for x in task.ins], axis=1)  # (n, inputs) elements
    volumes, row = out.volumes(), pieces.sum(axis=1)
    unit = unit_of([pieces.ravel() * size])
    grid = grid_of_units(out, unit, task.n)
    some = pieces[volumes > 0]
    if len(some) and some.min() > 0 and (some == some[0]).all() and size * int(some[0].sum()) <= _MOST_OF_ROW:
        return [_woven(some[0].tolist(), size, volumes, task.n)]
    pieces, row, volumes = map(plain, (pieces, row, volumes))
    if len(some) and plain(some).mean() * size >= SHORTEST:
        counts = volumes // row.clip(1) * len(task.ins)
        return [segments("cat_segments", size, counts, pieces.max(axis=1) * size, len(task.ins))]
    return [Phase(f"cat_all<{unit}, {size}, {len(task.ins)}>(l);", grid)]


def _woven(pieces: list[int], size: int, volumes: np.ndarray, n: int) -> Phase:
    row = sum(pieces)
    rows = next(v for v in (_rows_at_once(row * size, size, a) for a in (16, 8, 4)) if v * row * size <= _MOST_AT_ONCE)
    times = max(1, min(4, 64 // (rows * row * size)))
    body = f"cat_interleaved<uint{8 * size}_t, {times}, {rows}, {', '.join(map(str, pieces))}>(l);"
    blocks = -(-volumes // (row * rows * times * _THREADS))
    return Phase(body, grid_of(few_blocks(blocks), n))


def _rows_at_once(row: int, size: int, alignment: int) -> int:
    """The smallest number of rows of `row` bytes that keeps the alignment and is read in words."""
    return max(alignment // math.gcd(row, alignment), 4 // size)
