# SPDX-License-Identifier: Apache-2.0
"""The trainer's part of a batch: requests the workers' outputs, computes the rest, and makes the whole batch if no
worker does."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.batch import Batch
from ..core.picks import Picks
from ..core.source import Loading
from ..exec.context import BadSamples, Context
from ..exec.plan import Plan
from ..exec.scheduling.policy import Policy
from ..exec.scheduling.producer import Loaded, Producer
from ..exec.scheduling.statistics import Statistics
from ..external.arena import Lease
from ..graph.node import Edge
from .messages import raised
from .packing import with_names
from .worker_pool import PendingBatch, WorkerPool

_AWAY = -1  # used in place of a node number


class _Away(Loading):
    """A batch that a worker makes."""

    def __init__(self, workers: WorkerPool, asked: PendingBatch, ctx: Context):
        self.asked, self._workers = asked, workers
        self._whole = ctx.n, ctx.epoch, ctx.position, ctx.iteration

    def anew(self) -> Context:
        """A new context, to make the batch again from the beginning."""
        return Context(*self._whole)

    def __del__(self) -> None:  # if the batch is dropped, its answer is not needed
        if self.asked.answer is None:
            self._workers.forget(self.asked)


def _only_uploaded(rest: Plan, sent: list[Edge]) -> list[bool]:
    """For each output of the workers, whether it is only copied to the GPU."""
    read = {d.source.number: d.source for n in rest.nodes for d in n.reads()}
    uploaded = {(number, index) for number, source in read.items() for index in rest.uploaded(source)}
    return [edge in uploaded for edge in sent]


def let_gpu_read(batches: Sequence[Batch], only_uploaded: list[bool]) -> None:
    """Lets the GPU copy from pinned shared memory, for batches that are only copied there: whoever gets another one may
    write to it before the copy is done. Also considers that two outputs may be views of the same samples."""
    if not any(only_uploaded):
        return
    others = [_extent(b) for b, only in zip(batches, only_uploaded) if not only]
    for batch, only in zip(batches, only_uploaded):
        pinned = tuple(o.region.pinned for o in batch.owners if isinstance(o, Lease) and o.region.pinned is not None)
        if only and pinned:
            begin, end = _extent(batch)
            if all(end <= b or e <= begin for b, e in others):
                batch.owners += pinned


def _extent(batch: Batch) -> tuple[int, int]:
    """The addresses that all samples of a batch lie between."""
    data = batch.rows["data"]
    nbytes = (batch.spec.volumes() * batch.spec.dtype.itemsize).astype("u8")
    return (int(data.min()), int((data + nbytes).max())) if len(data) else (0, 0)


class PoolProducer(Producer):
    """Workers make the outputs of the plan `away`; `rest` computes the others from them. `plan` is the whole plan."""

    is_away = True

    def __init__(
        self,
        workers: WorkerPool,
        plan: Plan,
        away: Plan,
        rest: Plan,
        policy: Policy,
        num_threads: int,
        statistics: Statistics,
    ):
        super().__init__(plan, policy, num_threads, statistics.record)
        self.workers, self.away, self.rest, self._statistics = workers, away, rest, statistics
        rest.session = plan.session
        self._sent: list[Edge] = away.outputs
        self._only_uploaded = _only_uploaded(rest, self._sent)
        self._nodes = {n.number: n for n in plan.nodes}
        self._itself = Producer(plan, policy, num_threads, statistics.record)
        weakref.finalize(self, WorkerPool.close, workers)

    def begin(self, ctx: Context, picks: dict[int, Picks]) -> None:
        asked = self.workers.ask(ctx.n, ctx.epoch, ctx.position, ctx.iteration, picks)
        ctx.loading[_AWAY] = _Away(self.workers, asked, ctx)

    def load(self, ctx: Context, picks: dict[int, Picks], attempt: int = 0) -> Loaded:
        """Waits for a worker's outputs and stores them in the context, which has fewer samples if some were left
        out."""
        if _AWAY not in ctx.loading:
            self.begin(ctx, picks)
        away: Any = ctx.loading[_AWAY]
        if not self.workers.wait(away.asked):
            ctx.loading.clear()
            return self._itself.load(ctx, picks, attempt)
        answer = away.asked.answer
        if answer.outputs is not None:
            if len(answer.rows) < ctx.n:
                at = np.searchsorted(ctx.rows, answer.rows)
                ctx = Context(len(at), ctx.epoch[at], ctx.position[at], ctx.iteration, answer.rows)
                ctx.loading[_AWAY] = away
            batches = with_names(away.asked.batches, self._reader)
            let_gpu_read(batches, self._only_uploaded)
            ctx.values.update(zip(self._sent, batches))
            away.asked.batches = None
        return ctx, picks, attempt

    def _reader(self, number: int) -> Any:
        return self.plan.source_op(self._nodes[number])

    def start(self, ctx: Context) -> list[Batch] | None:
        return self._itself.start(ctx) if _AWAY not in ctx.loading else self._start(self.rest, ctx)

    def produce(
        self, ctx: Context, picks: dict[int, Picks], attempt: int = 0, started: list[Batch] | None = None
    ) -> tuple[list[Batch], np.ndarray]:
        away: Any = ctx.loading.pop(_AWAY, None)
        if away is None:
            return self._itself.produce(ctx, picks, attempt, started)
        answer = away.asked.answer
        if answer.outputs is None:
            self._told(answer)
            raise raised(answer.error, away.asked.worker)
        outputs = self._finish(ctx, started)
        if outputs is None:  # bad samples found here: their replacements must start at the reader
            return self._itself.produce(away.anew(), picks)
        self._told(answer)
        self.record_timings(ctx)
        return outputs, answer.rows

    def _finish(self, ctx: Context, started: list[Batch] | None) -> list[Batch] | None:
        """The outputs; None if there are bad samples."""
        if started is None and ctx.failed:
            return None
        try:
            outputs = self.rest.settle(ctx, self.pool, started or self.rest.start(ctx, self.pool))
        except BadSamples:
            return None
        return None if ctx.failed else outputs

    def _told(self, answer: Any) -> None:
        """Records the bad samples that a worker found, which may raise an error, and its timings."""
        for bad, iteration in answer.bad:
            named = {row: (self._nodes[number], reason, source) for row, (number, reason, source) in bad.items()}
            self.policy.record(named, iteration)
        for iteration, n, timings in answer.timings:
            done = Context(n, np.zeros(n, "u4"), np.zeros(n, "i8"), iteration)
            done.timings = timings
            self._statistics.record(done)

    def stop_waiting(self) -> None:
        self.workers.close()
