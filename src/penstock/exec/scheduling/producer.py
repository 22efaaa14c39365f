# SPDX-License-Identifier: Apache-2.0
"""Makes one batch from picks: loads samples, runs the plan, handles bad samples by the policy."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.errors import PipelineError, SampleErrors
from ...core.picks import Picks
from ...graph.node import Node
from ..context import BadSamples, Context, Timing, explain_failure
from ..plan import Plan
from ..ranges import in_range
from .policy import Policy

_MAX_ATTEMPTS = 1000
_MAX_IO_THREADS = 4
Loaded = tuple[Context, dict[int, Picks], int]  # the int: how often samples were replaced


class Producer:
    """Produces batches: loads the picks of the sources, runs the plan, applies the policy."""

    is_away = False  # whether workers make the batches, and this object waits for them

    def __init__(self, plan: Plan, policy: Policy, num_threads: int, record_timings: Callable[[Context], None]):
        self.plan, self.policy, self.record_timings = plan, policy, record_timings
        self.io = kernels.Pool(min(num_threads, _MAX_IO_THREADS))
        self.pool = kernels.Pool(num_threads)

    def set_threads(self, n: int) -> None:
        """Sets the number of native threads for batches made from now on."""
        if n != self.pool.n:
            self.pool = kernels.Pool(n)

    def stop_waiting(self) -> None:
        """The pipeline is closing: threads that wait for workers return."""

    def begin(self, ctx: Context, picks: dict[int, Picks]) -> None:
        """Starts loading the picks in all sources, except those whose arguments are data."""
        for node in self.plan.sources:
            if node.args:
                continue
            try:
                ctx.loading[node.number] = self.plan.source_op(node).begin(picks[node.number], self.io)
            except Exception as e:
                raise explain_failure(ctx, node, e) from None

    def load(self, ctx: Context, picks: dict[int, Picks], attempt: int = 0) -> Loaded:
        """Waits until the picks are loaded. Unreadable samples are replaced or left out, without reading the others
        again."""
        bad = self._load(ctx, picks)
        if bad and self.policy.on_error != "replace":
            keep = np.setdiff1d(np.arange(ctx.n), bad)
            kept = ctx.select(keep)
            kept.values = {edge: _like(b.take(keep), b) for edge, b in ctx.values.items()}
            kept.timings = ctx.timings
            return self._with_waiting(kept, picks := {k: p.select(keep) for k, p in picks.items()}), picks, attempt
        while bad:
            rows = np.array(bad)
            stand_ins = self._replacements(picks, rows, attempt)
            picks = {k: p.put(rows, stand_ins[k]) for k, p in picks.items()}
            some = ctx.select(rows)
            bad = rows[self._load(some, stand_ins)].tolist()
            ctx.values = {edge: _like(b.put(rows, some.values[edge]), b) for edge, b in ctx.values.items()}
            ctx.timings += some.timings
            attempt += 1
        return self._with_waiting(ctx, picks), picks, attempt

    def _with_waiting(self, ctx: Context, picks: dict[int, Picks]) -> Context:
        """Returns `ctx`, after adding the functions that start sources whose arguments are data."""
        for node in self.plan.sources:
            if node.args:
                ctx.waiting[node.number] = partial(self.plan.source_op(node).begin_by, picks[node.number], self.io)
        return ctx

    def _load(self, ctx: Context, picks: dict[int, Picks]) -> list[int]:
        """Loads the picks. Returns the rows that can't be read, after recording them; raises if the policy is to
        raise."""
        if not ctx.loading:
            self.begin(ctx, picks)
        bad: dict[int, tuple[Node, str, str]] = {}
        for node in self.plan.sources:
            if node.args:
                continue
            begin, loading = time.monotonic_ns(), ctx.loading.pop(node.number)
            try:
                with in_range(f"load {node.op.fn_name}"):
                    batches = loading.wait()
            except SampleErrors as e:
                failure = explain_failure(ctx, node, e)
                if e.batches is None or not isinstance(failure, BadSamples):
                    raise failure from None
                batches, bad = e.batches, failure.samples | bad
            except Exception as e:
                raise explain_failure(ctx, node, e) from None
            for i, b in enumerate(batches):
                ctx.values[node.number, i] = b
            span = (loading.begin_ns, loading.end_ns) if loading.end_ns else (begin, time.monotonic_ns())
            ctx.timings.append(Timing("load", [node.number], *span))
        if bad:
            self._record(ctx, bad)
        return sorted(bad)

    def start(self, ctx: Context) -> list[Batch] | None:
        """The part of `produce` before waiting for the GPU; requires loaded samples. None if some can't be processed:
        they are in `ctx.failed`."""
        return self._start(self.plan, ctx)

    def _start(self, plan: Plan, ctx: Context) -> list[Batch] | None:
        try:
            return plan.start(ctx, self.pool)
        except BadSamples as bad:
            ctx.failed = bad.samples
            return None

    def produce(
        self, ctx: Context, picks: dict[int, Picks], attempt: int = 0, started: list[Batch] | None = None
    ) -> tuple[list[Batch], np.ndarray]:
        """Returns the outputs for the picks, and which rows of the iteration they are. Samples that fail before any
        pixel is processed are replaced or left out first. `started` is the result of `start` for them, if it was
        called."""
        loaded = bool(ctx.values) or not self.plan.sources
        while True:
            try:
                if not loaded:
                    ctx, picks, attempt = self.load(ctx, picks, attempt)
                    loaded = True
                if started is None and not ctx.failed:
                    started = self.start(ctx)
                if started is not None:
                    outputs = self.plan.settle(ctx, self.pool, started)
                    break
            except BadSamples as bad:
                ctx.failed = bad.samples
            self._record(ctx, ctx.failed)
            ctx, picks, attempt = self._without(ctx, picks, np.array(sorted(ctx.failed)), attempt)
            started, loaded = None, False
        self.record_timings(ctx)
        if not ctx.failed:
            return outputs, ctx.rows
        self._record(ctx, ctx.failed)
        rows = np.array(sorted(ctx.failed))
        if self.plan.mixes_samples:
            ctx, picks, attempt = self._without(ctx, picks, rows, attempt)
            return self.produce(ctx, picks, attempt)
        if self.policy.on_error == "skip":
            keep = np.setdiff1d(np.arange(ctx.n), rows)
            return [_repack(o.take(keep)) for o in outputs], ctx.rows[keep]
        sub_picks = self._replacements(picks, rows, attempt)
        sub = ctx.select(rows)
        stand_ins, _ = self.produce(sub, sub_picks, attempt + 1)
        return [o.put(rows, s) for o, s in zip(outputs, stand_ins)], ctx.rows

    def _record(self, ctx: Context, bad: dict[int, tuple[Node, str, str]]) -> None:
        """Handles bad samples by the policy; for merged batches, leaves that to each batch."""
        if ctx.batches > 1:
            raise BadSamples(bad)
        self.policy.record({int(ctx.rows[i]): v for i, v in bad.items()}, ctx.iteration)

    def _without(self, ctx: Context, picks: dict[int, Picks], rows: np.ndarray, attempt: int):
        """The context and picks to repeat with the bad rows replaced or left out."""
        if self.policy.on_error == "replace":
            stand_ins = self._replacements(picks, rows, attempt)
            picks = {k: p.put(rows, stand_ins[k]) for k, p in picks.items()}
            return Context(ctx.n, ctx.epoch, ctx.position, ctx.iteration, ctx.rows), picks, attempt + 1
        keep = np.setdiff1d(np.arange(ctx.n), rows)
        picks = {k: p.select(keep) for k, p in picks.items()}
        return ctx.select(keep), picks, attempt

    def _replacements(self, picks: dict[int, Picks], rows: np.ndarray, attempt: int) -> dict[int, Picks]:
        if attempt >= _MAX_ATTEMPTS:
            raise PipelineError(f"no good sample found to replace a bad one after {attempt} tries")
        out = {}
        for node in self.plan.sources:
            new = self.plan.source_op(node).replace(picks[node.number], rows, attempt)
            if new is None:
                raise PipelineError(
                    node.describe("this source can't supply another sample for a bad one; use on_error='skip'")
                )
            out[node.number] = new
        if not out:
            raise PipelineError("a bad sample can't be replaced in a pipeline without a reader; use on_error='skip'")
        return out


def _like(batch: Batch, before: Batch) -> Batch:
    """Repacks a batch if it was packed before."""
    return _repack(batch) if before.is_packed else batch


def _repack(batch: Batch) -> Batch:
    """Repacks samples of one shape after some were left out."""
    return batch.packed_copy() if batch.spec.is_dense and not batch.is_packed else batch
