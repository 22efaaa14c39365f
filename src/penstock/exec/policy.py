# SPDX-License-Identifier: Apache-2.0
"""What happens to bad samples: raise, skip, or replace by the next good sample of the same shard."""

from __future__ import annotations

import threading
import time

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.errors import PipelineError, SampleError
from ..core.op import Picks
from ..graph.node import Node
from .context import BadSamples, Context, Timing, explain_failure
from .plan import Plan

_MAX_ATTEMPTS = 1000


class Policy:
    """`on_error` is "raise", "skip" or "replace"; `max_errors` a count, or a rate of the samples seen (a float below
    1), or None."""

    def __init__(self, on_error: str = "raise", max_errors: int | float | None = None):
        if on_error not in ("raise", "skip", "replace"):
            raise ValueError(f"on_error takes 'raise', 'skip' or 'replace'; got {on_error!r}")
        if max_errors is not None and not (isinstance(max_errors, (int, float)) and max_errors >= 0):
            raise ValueError(f"max_errors takes a count, or a rate below 1.0; got {max_errors!r}")
        if isinstance(max_errors, float) and max_errors >= 1:
            raise ValueError(f"max_errors as a float is a rate below 1.0; got {max_errors!r} (a count is an int)")
        self.on_error, self.max_errors = on_error, max_errors
        self.errors: list[SampleError] = []
        self._known: set[tuple[str, int, int]] = set()
        self.seen = 0
        self._lock = threading.Lock()

    def saw(self, n: int) -> None:
        with self._lock:
            self.seen += n

    def record(self, samples: dict[int, tuple[Node, str, str]], iteration: int) -> None:
        """Lists bad samples, each once an iteration; raises PipelineError if they are to be raised or too many."""
        with self._lock:
            for row, (node, reason, source) in sorted(samples.items()):
                # The same sample may turn up again as the next one behind another bad one.
                if (source, node.number, iteration) not in self._known:
                    self._known.add((source, node.number, iteration))
                    operator = node.op.display_name()
                    self.errors.append(SampleError(source, operator, reason, iteration, row, self.on_error))
            count, seen = len(self.errors), self.seen
        if self.on_error == "raise":
            row, (node, reason, source) = min(samples.items())
            more = f"\n({len(samples) - 1} more bad samples in this batch)" if len(samples) > 1 else ""
            raise PipelineError(node.describe(f"{reason}\nSample {row} of iteration {iteration}: {source}{more}"))
        limit = self.max_errors
        if limit is not None and (count > limit if isinstance(limit, int) else count > limit * max(seen, 100)):
            last = "\n".join(f"  {e.source}: {e.reason}" for e in self.errors[-5:])
            raise PipelineError(
                f"{count} of {seen} samples were bad, more than max_errors={limit} allows; the last:\n{last}"
            )


class Producer:
    """Produces batches: loads the picks of the sources, runs the plan, applies the policy."""

    def __init__(self, plan: Plan, policy: Policy, pool: kernels.Pool, io: kernels.Pool, record_timings):
        self.plan, self.policy, self.pool, self.io, self.record_timings = plan, policy, pool, io, record_timings

    def load(self, ctx: Context, picks: dict[int, Picks]) -> None:
        for node in self.plan.sources:
            begin = time.monotonic_ns()
            try:
                batches = self.plan.source_op(node).load(picks[node.number], self.io)
            except Exception as e:
                raise explain_failure(ctx, node, e) from None
            for i, b in enumerate(batches):
                ctx.values[node.number, i] = b
            ctx.timings.append(Timing("load", [node.number], begin, time.monotonic_ns()))

    def produce(self, ctx: Context, picks: dict[int, Picks], attempt: int = 0) -> tuple[list[Batch], np.ndarray]:
        """The outputs for the picks, and which rows of the iteration they are. Samples that fail before any pixel is
        touched are replaced or left out first."""
        loaded = bool(ctx.values) or not self.plan.sources
        while True:
            try:
                if not loaded:
                    self.load(ctx, picks)
                outputs = self.plan.run(ctx, self.pool)
                break
            except BadSamples as bad:
                self.policy.record({int(ctx.rows[i]): v for i, v in bad.samples.items()}, ctx.iteration)
                ctx, picks, attempt = self._without(ctx, picks, np.array(sorted(bad.samples)), attempt)
                loaded = False
        self.record_timings(ctx)
        if not ctx.failed:
            return outputs, ctx.rows
        self.policy.record({int(ctx.rows[i]): v for i, v in ctx.failed.items()}, ctx.iteration)
        rows = np.array(sorted(ctx.failed))
        if self.plan.mixes_samples:
            ctx, picks, attempt = self._without(ctx, picks, rows, attempt)
            return self.produce(ctx, picks, attempt)
        if self.policy.on_error == "skip":
            keep = np.setdiff1d(np.arange(ctx.n), rows)
            return [_repack(o.take(keep)) for o in outputs], ctx.rows[keep]
        sub_picks = self._replacements(picks, rows, attempt)
        sub = Context(len(rows), ctx.epoch[rows], ctx.position[rows], ctx.iteration, ctx.rows[rows])
        stand_ins, _ = self.produce(sub, sub_picks, attempt + 1)
        return [o.put(rows, s) for o, s in zip(outputs, stand_ins)], ctx.rows

    def _without(self, ctx: Context, picks: dict[int, Picks], rows: np.ndarray, attempt: int):
        """The same pass with the bad rows replaced, or left out."""
        if self.policy.on_error == "replace":
            stand_ins = self._replacements(picks, rows, attempt)
            picks = {k: p.put(rows, stand_ins[k]) for k, p in picks.items()}
            return Context(ctx.n, ctx.epoch, ctx.position, ctx.iteration, ctx.rows), picks, attempt + 1
        keep = np.setdiff1d(np.arange(ctx.n), rows)
        picks = {k: p.select(keep) for k, p in picks.items()}
        return Context(len(keep), ctx.epoch[keep], ctx.position[keep], ctx.iteration, ctx.rows[keep]), picks, attempt

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


def _repack(batch: Batch) -> Batch:
    """Samples that could be one dense array again after some were left out are made one."""
    return batch.packed_copy() if batch.spec.is_dense and not batch.is_packed else batch
