# SPDX-License-Identifier: Apache-2.0
"""Runs the chains of a conditional's branches, each for its samples, writing into the same output batch."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...graph.joining import Alternative, Branches, lineage
from ...graph.node import edge_of
from ..arguments import Resolver
from ..branches import Run, context_of, run_within
from ..context import Context, ScopedContext
from .chain import Chain

# Samples up to this many bytes are copied: an array is faster to make and read than a pointer per sample.
_SMALL_BYTES = 256

_Planned = tuple["_Part", Any, ScopedContext]  # one branch with its plan for one batch


class Joined:
    """`apart` runs the stages one by one if they can't be joined for a batch: for sequences, and to report errors."""

    def __init__(self, stage: Branches, apart: list[Run], resolvers: dict[int, Resolver]):
        self.outputs, self._apart = stage.outputs, apart
        self._alternatives = [_Part(a, resolvers) for a in stage.alternatives]
        self.chains = [p.chain for p in self._alternatives]
        # Outputs that alias other memory can't be written into a shared batch.
        self._can = all(p.chain.wiring.root[e] == e for p in self._alternatives for e in p.gives)

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        planned = self._plan(ctx) if self._can else None
        if planned is None:
            for run in self._apart:
                run(ctx, pool)
            return
        wholes = self._place(ctx.n, planned) if len(planned) > 1 else None
        for part, plan, sub in planned:
            given = {} if wholes is None else {e: w.take(sub.within) for e, w in zip(part.gives, wholes)}
            # Shift the start so that time spent on the other branch is not counted.
            run_within(ctx, sub, plan.made.run, pool, time.monotonic_ns() - sub.planning_ns, given)
            part.chain.plans.done(plan)
        for i, e in enumerate(self.outputs):
            parts = [(sub.values[part.gives[i]], sub.within) for part, _, sub in planned]
            ctx.values[e] = parts[0][0] if wholes is None else wholes[i]
            if wholes is not None:
                wholes[i].sources = _sources(ctx.n, parts)

    def _plan(self, ctx: Context) -> list[_Planned] | None:
        """Plans the branches that have samples; None if the stages must run one by one."""
        planned: list[_Planned] = []
        for part in self._alternatives:
            begin = time.monotonic_ns()
            try:
                sub = ScopedContext(ctx, context_of(ctx, part.scopes[-1]).within)
                if not sub.n:
                    continue
                sub.values = part.values(ctx, sub.within)
                if part.chain.rows(sub) is not sub:  # sequences are run stage by stage
                    return None
                plan = part.chain.plan(sub)
            except Exception:  # raised again, with an explanation, when the stages run one by one
                return None
            sub.planning_ns = time.monotonic_ns() - begin
            planned.append((part, plan, sub))
        return planned if planned and self._alike(planned) else None

    def _alike(self, planned: list[_Planned]) -> bool:
        """Whether merged inputs and outputs of the branches agree in type, dimensions and layout."""
        seen: dict[Any, tuple] = {}
        for part, plan, _ in planned:
            for name, e in (*zip(self.outputs, part.gives), *part.merged.items()):
                spec = plan.specs.get(e)
                if spec is not None:
                    form = spec.dtype, spec.ndim, spec.layout
                    if seen.setdefault(name, form) != form:
                        return False
        return True

    def _place(self, n: int, planned: list[_Planned]) -> list[Batch]:
        """Allocates the outputs for all samples."""
        wholes = []
        for i in range(len(self.outputs)):
            specs = [plan.specs[part.gives[i]] for part, plan, _ in planned]
            shape = np.empty((n, specs[0].ndim), "i8")
            for spec, (_, _, sub) in zip(specs, planned):
                shape[sub.within] = spec.shape
            wholes.append(Batch.allocate(Spec(shape, specs[0].dtype, specs[0].layout)))
        return wholes


class _Part:
    """The chain of one branch."""

    def __init__(self, alternative: Alternative, resolvers: dict[int, Resolver]):
        self.scope, self.gives, self.merged = alternative.scope, alternative.gives, alternative.merged
        self.chain = Chain(alternative.nodes, set(self.gives), resolvers)
        made = {n.number for n in alternative.nodes}
        reads = [d for n in alternative.nodes for d in n.reads()]
        self.scopes = lineage(self.scope)[::-1]
        # Edges from outside, with the number of scopes that already split them.
        self.reads = {
            edge_of(d): d.source.branch.depth if d.source.branch is not None else 0
            for d in reads
            if d.source.number not in made
        }

    def values(self, ctx: Context, rows: np.ndarray) -> dict[tuple[int, int], Batch]:
        """The inputs from outside, restricted to these rows of the batch."""
        values = {}
        for e, depth in self.reads.items():
            batch = ctx.values[e]
            here = rows if not depth else np.searchsorted(context_of(ctx, self.scopes[depth - 1]).within, rows)
            values[e] = batch if len(here) == len(batch) else _take(batch, here)
        return values


def _take(batch: Batch, rows: np.ndarray) -> Batch:
    spec = batch.spec
    if spec.n and math.prod(spec.stored[0].tolist()) * spec.dtype.itemsize <= _SMALL_BYTES and spec.is_dense:
        sources = None if batch.sources is None else [batch.sources[i] for i in rows.tolist()]
        return Batch.from_array(batch.array()[rows], spec.layout, sources)
    return batch.take(rows)


def _sources(n: int, parts: list[tuple[Batch, np.ndarray]]) -> list[str] | None:
    names = [""] * n
    for batch, rows in parts:
        if batch.sources is None:
            return None
        for i, name in zip(rows.tolist(), batch.sources):
            names[i] = name
    return names
