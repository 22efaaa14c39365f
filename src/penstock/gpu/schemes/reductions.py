# SPDX-License-Identifier: Apache-2.0
"""Distributes reductions over threads; see kernels/reductions/gpu_reduce.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.traced import plain
from ..launch import Phase, Task, grid_of, several_each

_LONG = 512  # bytes of contiguous elements that justify a thread block
_MOST_PERIOD = 4  # interleaved parameters that a thread can accumulate
_SIDE_BY_SIDE = 32  # neighbouring parameters that are read coalesced
_MANY = 8192  # total parameters that justify one thread each
_RESIDENT = 5  # blocks per multiprocessor that hide the latency of reads
_THREADS, _MOST_PARTS, _PARTIALS = 192, 64, 256  # as in kernels/reductions/gpu_reduce.h
_WORK = 8 * _THREADS  # units of work for a part, times the number of parts: see reduce_parts_of


def plan_reduction(task: Task, job: str = "Job") -> list[Phase]:
    """The decisions here determine the order of additions, so programs check them for every batch; grids do not."""
    assert task.call.args is not None
    x, reduced = task.ins[0], task.call.args["reduced"][0][: task.ins[0].ndim].astype(bool)
    job = f"{job}<From0::T, To0::T>"
    parameters = x.stored[:, ~reduced].prod(axis=1)
    counts = x.stored[:, reduced].prod(axis=1)
    turns = turns_of(x, reduced)
    period, rows = _inner(x, reduced)
    if not (rows * period * x.dtype.itemsize >= _LONG).any():
        turns = 0
    if not turns:
        many = (parameters.sum() >= _MANY) or (counts <= 32).all()
        if many or (period >= _SIDE_BY_SIDE).any():
            return [Phase(f"reduce_alone<{job}>(l);", grid_of(-(-parameters // 256), task.n))]
    units = counts * turns // (16 // x.dtype.itemsize) if turns else counts
    blocks = parameters // turns if turns else parameters
    split = bool(((units >= 2 * 2 * _WORK) & (blocks < _MOST_PARTS)).any())
    what = f"{turns}, {'true' if split else 'false'}"
    simple = "true" if turns and is_simple(reduced) else "false"
    parts = np.exp2(np.log2(np.maximum(plain(units) / _WORK, 1)) // 2).astype("i8") if split else 1
    most = np.maximum(_MOST_PARTS // np.maximum(plain(blocks), 1), 1)
    grid = grid_of(several_each(plain(blocks) * np.minimum(parts, most)), task.n)
    first = Phase(f"reduce_parts<{job}, {what}, {simple}>(l);", grid, (_THREADS, 1, 1), resident=_RESIDENT)
    if not split:
        return [first]
    grid = grid_of(-(-parameters // 256), task.n)
    finish = Phase(f"reduce_finish<{job}, {turns}, {simple}>(l);", grid)
    scratch = task.n * _PARTIALS * 8
    return [first._replace(scratch=scratch), finish._replace(scratch=scratch)]


def turns_of(x: Spec, reduced: np.ndarray) -> int:
    """Number of interleaved parameters along contiguous elements, if a thread can accumulate them; else 0."""
    period = _inner(x, reduced)[0]
    turns = int(period[0]) if x.n and (period == period[0]).all() else 0
    return turns if 1 <= turns <= _MOST_PERIOD else 0


def is_simple(reduced: np.ndarray) -> bool:
    """Whether the kept axes are only the first ones and the interleaved ones at the end."""
    kept = "".join("r" if r else "k" for r in reduced)
    return "r" not in kept.rstrip("k").rstrip("r")


def _inner(x: Spec, reduced: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number (n,) of parameters that are contiguous in memory, and how often that group repeats."""
    d = x.ndim
    while d and not reduced[d - 1]:
        d -= 1
    last = d
    while d and reduced[d - 1]:
        d -= 1
    return x.stored[:, last:].prod(axis=1), x.stored[:, d:last].prod(axis=1)
