# SPDX-License-Identifier: Apache-2.0
"""Plans of GPU segments whose image and sizes a program computes for each batch, as those of chains of the CPU
(exec/cpu/plan_cache.py): for pictures whose sizes never come again."""

from __future__ import annotations

import time
from typing import Any

from ...core import kernels
from ...gpu.launch import Launch
from ...gpu.source import OddBatch
from ..context import Context
from ..cpu.compiled_plan import ChainPlans
from ..cpu.plan_cache import Planned
from ..cpu.plan_trace import BoundPlan, PlanTrace, TracedPlan
from ..cpu.wiring import Edge
from ..origins import origins
from .chain import AtOnce, Calls, GpuChain, GpuSegment, plan_of
from .plan import GpuPlan


class GpuPlanTrace(PlanTrace):
    """The program of a segment on the GPU, which says where everything lies as `AtOnce` does."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[Edge, Any] = {}
        self.about: dict[Edge, Any] = {}
        self.views: dict[Edge, Any] = {}


class TracedSegment(GpuSegment):
    """A segment while its rules are traced."""

    trace: GpuPlanTrace

    def traced(self) -> TracedPlan:
        trace = self.trace
        trace.rows = {e: trace.of_value(value) for e, value in trace.rows_of_inputs.items()}
        self._lay_out(trace, trace.sample_of(self.ctx))
        of_inputs = trace.rows_of_inputs
        trace.more["rows"] = {e: x.value for e, x in trace.rows.items() if e not in of_inputs}
        trace.more["about"] = {e: x.value for e, x in trace.about.items()}
        trace.more["views"] = {e: x.value for e, x in trace.views.items()}
        return trace.traced(self.specs)

    def _chosen(self, calls: Calls) -> list[Launch]:
        """The launches for the batch at hand. What they follow from is checked for later batches."""
        trace = self.trace
        launches = calls.launches(self.chain, [self.specs[e] for e in calls.edges], self.n_rows, trace.of_memory)
        scratch = {id(x): x for launch in launches for x in launch.more_scratch}
        trace.more["scratch"] = [trace.settled(x.reshape(1)) for x in scratch.values()]
        trace.more["chosen"] = _compiled_in(launches)
        return launches


def _compiled_in(launches: list[Launch]) -> list[tuple | None]:
    """What has to be the same in each plan of a program. For smaller samples less may be chosen, which is not enough
    for others that pass the checks. Bytes of scratch memory follow from that, or from the grid."""
    return [None if x.only_time else (x.source, x.block, x.shared, x.zero) for x in launches]


def bound_plan(chain: GpuChain, ctx: Context, bound: BoundPlan) -> GpuPlan:
    """The plan of n samples in the memory of a program, once that has run for a batch. Raises OddBatch."""
    plan, at, wiring = bound.plan, AtOnce(), chain.wiring(chain.nodes)
    of = plan.more
    for to, values in ((at.rows, {**plan.rows, **of["rows"]}), (at.about, of["about"]), (at.views, of["views"])):
        to.update((e, bound.array(value)) for e, value in values.items())
    at.kernels, at.arguments, at.scratch = list(plan.kernels), bound.arguments, [bound.array(x) for x in of["scratch"]]
    for kernel, fields in zip(plan.kernels, plan.constant_fields):
        at.pointers.append({field: bound.array(x) for field, x in fields.items() if field in kernel.pointers})
    specs = {e: bound.spec(e) for e in plan.specs}
    called = [link for link in chain.links if not link.op.aliases]
    calls = Calls(wiring, [(c, k, rows.array) for c, k, rows in zip(called, plan.kernels, bound.arguments)])
    launches = calls.launches(chain, [specs[e] for e in calls.edges], ctx.n)
    if _compiled_in(launches) != of["chosen"]:
        raise OddBatch("a plan for this batch is not good for others that the program plans")
    for e in calls.shapes(launches):
        if e not in bound.shapes:
            at.described(e, specs[e])
    at.shapes |= bound.shapes
    named = origins(chain.links, plan.rows, ctx.values)
    return plan_of(ctx.gpu.session, chain.links, wiring, calls, launches, at, specs, named, ctx.n)


class GpuCompiledPlan(Planned):
    """A chain that is planned by a program, for batches of n samples."""

    def __init__(self, chain: GpuChain, plan: TracedPlan):
        self._chain, self._bound = chain, BoundPlan(plan)
        self._made: GpuPlan | None = None

    def plan(self, ctx: Context) -> bool:
        self._begin = time.monotonic_ns()
        if not self._bound.run(ctx):
            return False
        if self._made is None or self._made.session is not ctx.gpu.session:
            try:
                self._made = bound_plan(self._chain, ctx, self._bound)
            except (KeyError, ValueError):  # it needs other launches; the rules run, and say if something is wrong
                return False
        return True

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        assert self._made is not None
        self._made.run(ctx, self._begin)


class GpuChainPlans(ChainPlans):
    """The plans of a chain on the GPU."""

    chain: GpuChain

    def _trace(self, ctx: Context) -> TracedPlan:
        return self._segment(TracedSegment(self.chain, ctx, self.chain.links[0], GpuPlanTrace())).traced()

    def _bound(self, plan: TracedPlan, ctx: Context) -> Any:
        return GpuCompiledPlan(self.chain, plan)
