# SPDX-License-Identifier: Apache-2.0
"""Kernels for operators that work batch-wise, because the shapes of their outputs are known only afterwards.

Such an operator allocates outputs that are large enough, has a kernel fill their beginnings, and keeps those: `run` of
the kernel over the samples, then `beginnings`. Nothing is copied."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import kernels
from .batch import Batch, Spec
from .errors import SampleErrors
from .op import Arguments
from .rows import ArgumentRows

_KEPT = 64  # kernels and batch sizes that a thread keeps rows for


class _Prepared:
    """A kernel with the rows of its arguments, kept between batches: only what has changed is written again."""

    def __init__(self, kernel: kernels.Kernel, n: int, n_out: int, n_in: int):
        self.arguments = ArgumentRows(n, kernel.args, kernel.pointers)
        none: list[tuple[None, int]] = [(None, -1)]
        self._program = kernels.Program([kernels.Step(kernel, self.arguments.array, none * n_out, none * n_in)], n)

    def run(self, pool: kernels.Pool, batches: Sequence[Batch], outcome: kernels.Outcome) -> None:
        for slot, batch in zip(self._program.slots[0], batches):
            slot.rows = batch.rows_address
        self._program.run(pool, outcome)


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.prepared: dict[tuple[str, int, int, int], _Prepared] = {}


_per_thread = _PerThread()


def run(a: Arguments, kernel: str, columns: Mapping[str, Any], outs: Sequence[Batch], ins: Sequence[Batch]) -> None:
    """Runs a kernel on each sample, by the threads of `a.pool`. Raises SampleErrors for those that it can't handle."""
    if not a.n:
        return
    key = kernel, a.n, len(outs), len(ins)
    prepared = _per_thread.prepared.pop(key, None) or _Prepared(kernels.kernel(kernel), *key[1:])
    alive = prepared.arguments.fill(columns)
    outcome = kernels.Outcome(np.zeros(a.n, "i4"), a.n, 1)
    prepared.run(a.pool, [*outs, *ins], outcome)
    del alive
    if outcome.failed:
        raise SampleErrors({int(i): outcome.reason(int(i)) for i in outcome.status.nonzero()[0]})
    if len(_per_thread.prepared) >= _KEPT:
        _per_thread.prepared.clear()
    _per_thread.prepared[key] = prepared


def beginnings(batch: Batch, counts: np.ndarray) -> Batch:
    """The first `counts` (n,) slices of each sample, along its first axis, in the same memory."""
    shape, rows = batch.spec.shape.copy(), batch.rows.copy()
    shape[:, 0] = rows["shape"][:, 0] = counts
    return batch.with_rows(Spec(shape, batch.spec.dtype, batch.spec.layout), rows, batch.owners, batch.sources)
