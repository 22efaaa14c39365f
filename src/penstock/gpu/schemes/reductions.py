# SPDX-License-Identifier: Apache-2.0
"""How reductions are spread over threads; see kernels/reductions/gpu_reduce.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.traced import plain
from ..launch import Phase, Task, grid_of, several_each
from .bounds import bound_of

_LONG = 512  # bytes of neighbours that are worth a block of threads
_MOST_PERIOD = 4  # parameters in turn that a thread keeps
_SIDE_BY_SIDE = 32  # neighbouring parameters that threads read side by side
_MANY = 8192  # parameters of all samples that are worth a thread each
_BLOCKS = 1024  # that keep a large GPU busy


def plan_reduction(task: Task, job: str = "Job") -> list[Phase]:
    assert task.call.args is not None
    x, reduced = task.ins[0], task.call.args["reduced"][0][: task.ins[0].ndim].astype(bool)
    job = f"{job}<From0::T, To0::T>"
    parameters = x.stored[:, ~reduced].prod(axis=1)
    counts = x.stored[:, reduced].prod(axis=1)
    period, rows = _inner(x, reduced)
    turns = turns_of(x, reduced)
    in_runs = turns > 0
    # What follows makes no difference but in time; what is kept has to fit.
    of_each, parameters, counts, period, rows = parameters, *map(plain, (parameters, counts, period, rows))
    run = int(np.max(rows * period, initial=0))
    many = int(parameters.sum()) >= _MANY or int(counts.max(initial=0)) <= 32
    if not in_runs and (many or int(period.max(initial=1)) >= _SIDE_BY_SIDE):
        return [Phase(f"reduce_alone<{job}>(l);", grid_of(-(-parameters // 256), task.n))]
    blocks = parameters // turns if in_runs else parameters
    work = run // (16 // x.dtype.itemsize) if in_runs else int(counts.max(initial=0))
    threads = 96 if work <= 384 else 192
    wanted = -(-_BLOCKS // max(int(blocks.sum()), 1))
    parts = 1 << (max(1, min(wanted, work // (4 * threads), 64)).bit_length() - 1)
    most = bound_of(of_each) if parts > 1 else 1
    simple = in_runs and is_simple(reduced)
    what = f"{job}, {turns}, {parts}, {threads}, {most}, {'true' if simple else 'false'}"
    first = Phase(f"reduce_parts<{what}>(l);", grid_of(several_each(blocks * parts), task.n), (threads, 1, 1))
    if parts == 1:
        return [first]
    finish = Phase(
        f"reduce_finish<{job}, {turns if simple else 0}, {parts}, {most}>(l);", grid_of(-(-parameters // 256), task.n)
    )
    scratch = task.n * most * parts * 8
    return [first._replace(scratch=scratch), finish._replace(scratch=scratch)]


def turns_of(x: Spec, reduced: np.ndarray) -> int:
    """How many parameters come in turn along runs that are worth a block of threads; 0: there are no such runs."""
    period, rows = _inner(x, reduced)
    run = int(plain(rows * period).max(initial=0))
    turns = int(period[0]) if x.n and (period == period[0]).all() else 0
    return turns if 1 <= turns <= _MOST_PERIOD and run * x.dtype.itemsize >= _LONG else 0


def is_simple(reduced: np.ndarray) -> bool:
    """Whether the kept axes are the first ones and those that make parameters come in turn."""
    kept = "".join("r" if r else "k" for r in reduced)
    return "r" not in kept.rstrip("k").rstrip("r")


def _inner(x: Spec, reduced: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) parameters that follow each other in memory, and how often they do in turn."""
    d = x.ndim
    while d and not reduced[d - 1]:
        d -= 1
    last = d
    while d and reduced[d - 1]:
        d -= 1
    return x.stored[:, last:].prod(axis=1), x.stored[:, d:last].prod(axis=1)
