# SPDX-License-Identifier: Apache-2.0
"""A window that is not fused, with a constant border that is alike in all rows: threads share pieces of its rows."""

from __future__ import annotations

import numpy as np

from penstock.core.batch import Spec
from penstock.core.traced import plain
from penstock.gpu.access import threads_of_row
from penstock.gpu.launch import Phase, Task, grid_of, plain_spec, several_each

_THREADS = 256
_MOST_FILLS = 4
_SHORTEST = 16  # bytes of a row


def alone(task: Task) -> list[Phase] | None:
    """The launch of a window that is not fused; None: use the general launch of LOCAL kernels."""
    args, (x,), (out,) = task.call.args, task.ins, task.outs
    if args is None or x.dtype != out.dtype or not out.ndim or args["border"].any() or not (fills := _fills(args, out)):
        return None
    args, x, out = plain(args), plain_spec(x), plain_spec(out)  # the rest affects only speed
    if int(max(out.volumes().max(initial=0), x.volumes().max(initial=0))) >= 1 << 30:
        return None
    row = _row(args, x, out)
    if int(row.mean()) * out.dtype.itemsize < _SHORTEST:
        return None
    # Rows are as in gpu_window.h.
    runs = -(-row * out.dtype.itemsize // 16) + 1
    g = min(threads_of_row(int(runs.mean())), 16)
    u = max(1, min(3, -(-int(runs.mean()) // g)))
    piece = 4 * u * g
    items = out.volumes() // np.maximum(row, 1) * -(-runs // piece)
    shared = f"{out.ndim}, {fills}, {g}, {_THREADS}, {u}, {piece}"
    body = f"copy_window<Chain::Kind::T, {shared}>(l);"
    return [Phase(body, grid_of(several_each(-(-items * g // _THREADS)), task.n), resident=4)]


def _fills(args: np.ndarray, out: Spec) -> int:
    """The number of fill values that alternate along the rows; 0 if they don't."""
    if (args["channels"] < 0).all():
        return 1
    count = int(out.stored[0, -1])
    start = args["start"][:, out.ndim - 1] - args["origin"][:, out.ndim - 1]
    is_whole = not start.any() and (out.stored[:, -1] == args["extent"][:, out.ndim - 1]).all()
    alike = (args["channels"] == out.ndim - 1).all() and (out.stored[:, -1] == count).all()
    return count if alike and is_whole and 1 <= count <= _MOST_FILLS and out.ndim > 1 else 0


def _row(args: np.ndarray, x: Spec, out: Spec) -> np.ndarray:
    """(n,) elements per row: those of the last axis that a window cuts or pads, with the axes after it."""
    begin = args["start"][:, : out.ndim] - args["origin"][:, : out.ndim]
    is_whole = (begin == 0) & (x.stored == out.stored)
    is_whole[:, 0] = False
    behind = np.logical_and.accumulate(is_whole[:, ::-1], axis=1)[:, ::-1]
    behind[:, :-1], behind[:, -1] = behind[:, 1:], True  # whether all axes after an axis are whole
    return np.where(behind, out.stored, 1).prod(axis=1)
