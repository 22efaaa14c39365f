# SPDX-License-Identifier: Apache-2.0
"""Runs a chain: infers all shapes, narrows windows to what is needed, then runs all steps on each sample in one native
call."""

from __future__ import annotations

import contextlib
import time
from typing import Any, ClassVar

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.plan_cache import PlanCache
from ...core.plan_memory import PlanMemory
from ...graph.node import Edge, Node
from ..arguments import Resolver, data_of
from ..context import Context
from ..frames import FrameContext
from ..source_info import origins
from .plan import CpuPlan
from .segment import Divided, Segment
from .wiring import Wiring, inputs_of, outputs_of


class Link:
    """One operator of a chain: data that is the same for every batch."""

    __slots__ = ("arguments", "draws", "ins", "is_lone", "node", "op", "outs", "peeks", "resolver")

    def __init__(self, node: Node, resolver: Resolver, is_lone: bool = True):
        self.node, self.op, self.resolver = node, node.op, resolver
        self.ins, self.outs = inputs_of(node), outputs_of(node)
        self.peeks = [(i, self.ins[i]) for i in node.op.ahead(len(self.ins))]
        self.draws = "seed" in node.op.schema  # draws random numbers; the imperative mode changes the key
        self.is_lone = is_lone  # nothing else reads its first input
        self.arguments = data_of(node)

    def label(self, e: Edge, spec: Spec) -> str:
        """The layout of an input as the operator sees it: its own. If the first input has none, the first accepted
        layout with as many dimensions."""
        if spec.layout or e != self.ins[0]:
            return spec.layout
        return next((layout for layout in self.op.layouts if len(layout) == spec.ndim), "")

    def is_sequence(self, e: Edge, spec: Spec) -> bool:
        """Whether the operator processes an input frame by frame."""
        return self.op.by_frame and spec.ndim > 1 and self.label(e, spec).startswith("F")

    def see(self, rows: FrameContext) -> None:
        """Adds the operator's inputs to the context as rows that are frames. Raises ValueError if it needs other
        rows."""
        if not self.op.by_frame:
            raise ValueError("it takes sequences whole")
        values = rows.whole.values
        rows.see({e: self.label(e, values[e].spec) for e in self.ins if e in values}, self.arguments)


class Chain:
    """`needed` are the outputs used by later stages or the user; everything else stays in the threads' scratch
    memory."""

    made_of: ClassVar[type[Batch]] = Batch

    def __init__(self, nodes: list[Node], needed: set[Edge], resolvers: dict[int, Resolver]):
        self.nodes, self.needed = nodes, needed
        reads = [e for n in nodes for e in inputs_of(n)]
        lone = {e for e in reads if reads.count(e) == 1 and e not in needed}
        self.links = [Link(n, resolvers[n.number], not n.inputs or inputs_of(n)[0] in lone) for n in nodes]
        self.called = [link for link in self.links if not link.op.aliases]
        self.wiring = Wiring(nodes, needed)
        self.inputs = [e for e in dict.fromkeys(reads) if e not in self.wiring.root]
        self.plans = PlanCache(self, all(link.op.traced for link in self.links))
        self._drawing = [link.resolver for link in self.links if link.draws]
        self._divisions: dict[tuple, int] = {}  # where batches are planned in two parts, by kind
        self._parts: dict[int, tuple[Chain, Chain]] = {}

    def divided(self, at: int) -> tuple[Chain, Chain]:
        """Splits the chain before operator `at`, where the meaning of rows changes between frames and samples."""
        if at not in self._parts:
            resolvers = {link.node.number: link.resolver for link in self.links}
            before, behind = self.nodes[:at], self.nodes[at:]
            read = {e for n in behind for e in inputs_of(n)}
            kind = type(self)
            made = kind(before, self.needed | read, resolvers), kind(behind, self.needed, resolvers)
            self._parts.setdefault(at, made)  # keeps another thread's result if it was first
        return self._parts[at]

    def parts(self) -> list[Chain]:
        """The chain, and the chains it was split into."""
        return [self, *(c for parts in list(self._parts.values()) for part in parts for c in part.parts())]

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        begin, rows = time.monotonic_ns(), self.rows(ctx)
        try:
            plan = self.plan(rows)
        except Divided as divided:
            for part in self.divided(divided.at):
                part.run(ctx, pool)
            return
        plan.made.run(rows, pool, begin)
        self.plans.done(plan)
        if isinstance(rows, FrameContext):
            named = origins(self.links, self.inputs, ctx.values)
            rows.publish(self.wiring.wanted, named, self._frames_of_none(rows))

    def rows(self, ctx: Context) -> Context:
        """The batch as operators see it: one row per frame if the first operator processes sequences frame by frame."""
        first = self.links[0]
        if first.op.by_frame:
            for e in first.ins:
                spec = ctx.values[e].spec
                if first.is_sequence(e, spec):
                    return FrameContext(ctx, spec.shape[:, 0])
        return ctx

    def kind(self, rows: Context) -> tuple | None:
        """A key of everything, apart from columns, that the rules may depend on; None if the batch is not traced."""
        kind: list[Any] = [resolver.key for resolver in self._drawing]
        if isinstance(rows, FrameContext):
            for link in self.links:
                try:
                    link.see(rows)
                except ValueError:  # the rules raise the error, or divide the chain there
                    kind.append(link.node.number)
                    break
            kind.append(rows.sequences)
        for e in self.inputs:
            batch = rows.values.get(e)
            if batch is None:
                kind.append(None)
                continue
            spec = batch.spec
            if spec.stored is not spec.shape:
                return None
            kind += spec.shape.shape[1], spec.dtype, spec.layout, batch.sources is None
        return tuple(kind)

    def plan(self, rows: Context) -> PlanMemory:
        """Returns the plan of a batch. After running it, pass it to `plans.done`. Raises Divided if the chain needs two
        plans."""
        kind = self.kind(rows) if self.plans.is_traced else None
        if kind in self._divisions:
            raise Divided(self._divisions[kind])
        try:
            return self.plans.plan(kind, rows)
        except Divided as divided:
            if kind is not None:
                self._divisions[kind] = divided.at
            raise

    def fill(self, to: PlanMemory, rows: Context) -> None:
        """Runs the rules to fill a PlanMemory with the plan of a batch."""
        segment = Segment(self, rows, to).planned()
        segment.narrow()
        to.specs, to.alive = segment.specs, segment.arguments
        to.rows = {e: batch.rows for e, batch in segment.inputs.items()}
        self.lay_out(segment, segment.fill_rows())

    def lay_out(self, segment: Segment, called: list[tuple[kernels.Kernel, Any]]) -> None:
        """Adds rows of what is made, after the rules of the segment have run."""
        for e in self.wiring.root:
            segment.lay_out(e)

    def plan_of(self, ctx: Context, at: PlanMemory) -> Any:
        """Makes the plan from these arrays."""
        return CpuPlan(self, ctx, at)

    def _frames_of_none(self, rows: FrameContext) -> dict[Edge, Spec]:
        """Output specs for one frame of each sequence without frames. Only used for shapes; nothing is computed, and
        failures of the rules are ignored."""
        none = rows.frames_of_none()
        if none is None or any(link.peeks for link in self.links):
            return {}
        segment = Segment(self, none, PlanMemory())
        with contextlib.suppress(Exception):
            segment.planned()
        return segment.specs
