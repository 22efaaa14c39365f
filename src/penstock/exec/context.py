# SPDX-License-Identifier: Apache-2.0
"""The state of a batch as it passes through the stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.batch import Batch
from ..core.errors import AxisError, InternalError, PipelineAxisError, PipelineError, PipelineValueError, SampleErrors
from ..core.kernels import Outcome
from ..core.op import Arguments
from ..core.rows import allocate, indices
from ..core.source import Loading
from ..core.traced import Untraceable
from ..graph.node import Node, edge_of
from ..graph.scopes import Scope

# Exceptions that operators raise for user errors, with a text that explains the error.
_OF_USERS = (ValueError, TypeError, RuntimeError, OSError, ImportError, NotImplementedError)

_INT32 = np.dtype("i4")
_POOL: Mapping[tuple[int, int], Any] = {}


class BadSamples(Exception):
    """Samples that can't be processed: {row: (node, reason, source)}."""

    def __init__(self, samples: dict[int, tuple[Node, str, str]]):
        super().__init__(f"{len(samples)} bad samples")
        self.samples = samples


_EXPLAINED = (PipelineError, SampleErrors, StopIteration, BadSamples, MemoryError)


class Timing:
    """When one stage ran for one batch: `native` is the start of the kernels, `outcome` the time of each."""

    __slots__ = ("begin", "end", "kind", "native", "numbers", "outcome")

    def __init__(
        self, kind: str, numbers: list[int], begin: int, end: int, native: int = 0, outcome: Outcome | None = None
    ):
        self.kind, self.numbers, self.begin, self.end = kind, numbers, begin, end  # "load", "batch", "chain" or "gpu"
        self.native, self.outcome = native or end, outcome


class Context:
    """`n` samples with their `epoch` and `position`, the batches computed so far, and the samples that failed.

    `rows` are the samples' indices in the iteration, as some samples may have been left out."""

    __slots__ = (
        *("batches", "epoch", "failed", "gpu", "iteration", "loading", "memory", "n", "position", "rows"),
        *("sample_of", "scopes", "status", "timings", "values", "waiting"),
    )

    def __init__(
        self,
        n: int,
        epoch: np.ndarray,
        position: np.ndarray,
        iteration: int,
        rows: np.ndarray | None = None,
        batches: int = 1,
    ):
        self.rows = indices(n) if rows is None else rows
        self.batches = batches  # number of iterations that the samples belong to, starting at `iteration`
        self.n, self.epoch, self.position, self.iteration = n, epoch, position, iteration
        self.loading: dict[int, Loading] = {}  # loads in progress, by source node
        # Starts sources whose arguments are data, by node.
        self.waiting: dict[int, Callable[[Arguments], Loading]] = {}
        self.values: dict[tuple[int, int], Batch] = {}
        self.status = allocate(n, _INT32)[0]
        self.failed: dict[int, tuple[Node, str, str]] = {}
        self.timings: list[Timing] = []
        self.gpu: Any = None  # the GpuPass, while the stages run
        self.scopes: dict[Scope, ScopedContext] = {}
        self.sample_of: np.ndarray | None = None  # (n,) int32, if the rows are frames (exec/frames.py)
        # Allocators for outputs by (node, index), called with the number of bytes; others use the pool.
        self.memory: Mapping[tuple[int, int], Any] = _POOL

    def select(self, rows: np.ndarray) -> Context:
        """A batch of only these rows, from the start."""
        return Context(len(rows), self.epoch[rows], self.position[rows], self.iteration, self.rows[rows])

    def start_again(self, loaded: dict[tuple[int, int], Batch]) -> None:
        """Resets the state to just after the sources were loaded."""
        self.loading.clear()
        self.values.clear()
        self.values.update(loaded)
        self.status[:] = 0
        self.failed.clear()
        self.timings.clear()
        self.scopes.clear()

    def source_of(self, node: Node, row: int) -> str:
        """The origin of a row's sample, from the inputs of `node` if known."""
        for d in node.inputs:
            batch = self.values.get(edge_of(d))
            if batch is not None and batch.sources is not None and len(batch.sources) == self.n:
                return batch.sources[row]
        return self._source_in_whole(row, self.n)

    def _source_in_whole(self, row: int, n: int) -> str:
        """The origin of a sample of the whole batch, of `n`, from any of its batches."""
        for batch in self.values.values():
            if batch.sources is not None and len(batch.sources) == n:
                return batch.sources[row]
        return f"sample {row} of iteration {self.iteration}"


class ScopedContext(Context):
    """The samples of a conditional's branch: `within` are their rows in `whole`, the context of the batch, with which
    `values` and `timings` are shared."""

    __slots__ = ("n_whole", "planning_ns", "within")

    def __init__(self, whole: Context, within: np.ndarray):
        super().__init__(len(within), whole.epoch[within], whole.position[within], whole.iteration, whole.rows[within])
        self.planning_ns = 0  # planning time, if they are not run right after planning
        self.n_whole, self.within = whole.n, within  # not `whole` itself, to avoid a reference cycle
        self.values, self.timings = whole.values, whole.timings

    def _source_in_whole(self, row: int, n: int) -> str:
        return super()._source_in_whole(self.within[row], self.n_whole)


def explain_failure(ctx: Context, node: Node, error: Exception) -> Exception:
    """Converts an exception from an operator's code to the exception to raise."""
    if isinstance(error, SampleErrors):
        reasons = {int(i if ctx.sample_of is None else ctx.sample_of[i]): r for i, r in error.reasons.items()}
        where = error.sources
        return BadSamples(
            {i: (node, r, ctx.source_of(node, i) if where is None else where[i]) for i, r in reasons.items()}
        )
    if isinstance(error, (PipelineError, StopIteration, BadSamples, Untraceable)):
        return error
    text = str(error)
    if isinstance(error, MemoryError):
        text = text or "out of memory: what the operator makes does not fit; give it a smaller batch or smaller shapes"
    elif not isinstance(error, _OF_USERS):
        text = f"[internal error] {type(error).__name__}: {text}"
    kind: type[PipelineError] = PipelineValueError if isinstance(error, ValueError) else PipelineError
    return (PipelineAxisError if isinstance(error, AxisError) else kind)(node.describe(text))


def cause_of(error: Exception) -> Exception | None:
    """The exception to use in `raise ... from` for the error of `explain_failure`: a bug of ours is shown with its
    traceback; other errors are explained by their text."""
    return error if isinstance(error, InternalError) or not isinstance(error, (*_OF_USERS, *_EXPLAINED)) else None
