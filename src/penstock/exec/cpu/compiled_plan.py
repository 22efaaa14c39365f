# SPDX-License-Identifier: Apache-2.0
"""Plans of chains that programs make."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ...core import kernels
from ...core.batch import Batch, Spec
from ..context import Context
from ..frames import FrameContext
from .plan_cache import PlanCache, Planned
from .plan_memory import BoundPlan
from .plan_trace import PlanTrace, TracedPlan
from .segment import Segment
from .wiring import Edge

if TYPE_CHECKING:
    from .chain import Chain


class CompiledPlan(Planned):
    """A chain that is planned by a program, for batches of n samples. Used by one batch at a time."""

    def __init__(self, chain: Chain, plan: TracedPlan):
        self._chain, self._bound = chain, BoundPlan(plan)
        self._made: Any = None

    @property
    def specs(self) -> Mapping[Edge, Spec]:
        return self._bound.at.specs

    def plan(self, ctx: Context) -> bool:
        if not self._bound.run(ctx):
            return False
        if self._made is None or not self._made.fits(ctx):
            try:
                self._made = self._chain.plan_of(ctx, self._bound.at)
            except (KeyError, ValueError):  # it needs other launches; the rules run, and say if something is wrong
                return False
        return True

    def run(self, ctx: Context, pool: kernels.Pool, begin: int, given: Mapping[Edge, Batch] | None = None) -> None:
        self._made.run(ctx, pool, begin, given)


class ChainPlans(PlanCache[CompiledPlan]):
    """The plans of a chain that programs make."""

    def __init__(self, chain: Chain):
        arguments = (e for link in chain.links for _, e in link.arguments)
        super().__init__(dict.fromkeys((*chain.inputs, *arguments)))
        self._chain: Chain = weakref.proxy(chain)  # whose these are
        self._drawing = [link.resolver for link in chain.links if link.draws]

    def kind(self, ctx: Context) -> tuple | None:
        """All that the rules may decide by, other than columns; None for what is not traced."""
        kind: list[Any] = [resolver.key for resolver in self._drawing]
        if isinstance(ctx, FrameContext):
            for link in self._chain.links:
                try:
                    link.see(ctx)
                except ValueError:  # the rules say why, or divide the chain there
                    break
            kind.append(ctx.sequences)
        for e in self._chain.inputs:
            batch = ctx.values.get(e)
            if batch is None:
                kind.append(None)
                continue
            spec = batch.spec
            if spec.stored is not spec.shape:
                return None
            kind += spec.shape.shape[1], spec.dtype, spec.layout, batch.sources is None
        return tuple(kind)

    def _trace(self, ctx: Context) -> TracedPlan:
        with closing(PlanTrace()) as trace:
            segment = Segment(self._chain, ctx, trace).planned()
            self._chain.lay_out(segment, trace)
            return trace.traced(segment.specs)

    def _bound(self, plan: TracedPlan, ctx: Context) -> CompiledPlan:
        return CompiledPlan(self._chain, plan)
