# SPDX-License-Identifier: Apache-2.0
"""Kernels for operators that work batch-wise, because the shapes of their outputs are known only afterwards.

Such an operator allocates outputs that are large enough, has a kernel fill their beginnings, and keeps those: `run` of
the kernel over the samples, then `beginnings`. Nothing is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import kernels
from .batch import Batch, Spec
from .errors import SampleErrors
from .op import Arguments


def run(a: Arguments, kernel: str, columns: Mapping[str, Any], outs: Sequence[Batch], ins: Sequence[Batch]) -> None:
    """Runs a kernel on each sample, by the threads of `a.pool`. Raises SampleErrors for those that it can't handle."""
    if not a.n:
        return
    native = kernels.kernel(kernel)
    args, alive = native.rows(a.n, columns)
    slots = [[(_rows(b), -1) for b in batches] for batches in (outs, ins)]
    outcome = kernels.Outcome(np.zeros(a.n, "i4"), a.n, 1)
    a.pool.run([kernels.Step(native, args, *slots)], a.n, outcome)
    del alive
    if outcome.failed:
        raise SampleErrors({int(i): outcome.reason(i) for i in outcome.status.nonzero()[0]})


def beginnings(batch: Batch, counts: np.ndarray) -> Batch:
    """The first `counts` (n,) slices of each sample, along its first axis, in the same memory."""
    shape = batch.spec.shape.copy()
    shape[:, 0] = counts
    return batch.relabel(Spec(shape, batch.spec.dtype, batch.spec.layout))


def _rows(batch: Batch) -> np.ndarray:
    """Contiguous, as kernels want them: asking for their address makes them so."""
    assert batch.rows_address
    return batch.rows
