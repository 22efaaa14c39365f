# SPDX-License-Identifier: Apache-2.0
"""Runs a chain: infers all shapes, narrows to the windows that are needed, then takes each sample through all steps
in one native call."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from ...core import kernels
from ...core.batch import Spec
from ...core.plan_cache import PlanCache
from ...core.plan_memory import PlanMemory
from ...graph.node import Node
from ..arguments import Resolver, data_of
from ..context import Context
from ..frames import FrameContext
from ..source_info import origins
from .plan import CpuPlan
from .segment import Divided, Segment
from .wiring import Edge, Wiring, inputs_of, outputs_of


class Link:
    """One operator of a chain: what is the same for every batch."""

    __slots__ = ("arguments", "draws", "ins", "is_lone", "node", "op", "outs", "peeks", "resolver")

    def __init__(self, node: Node, resolver: Resolver, is_lone: bool = True):
        self.node, self.op, self.resolver = node, node.op, resolver
        self.ins, self.outs = inputs_of(node), outputs_of(node)
        self.peeks = [(i, self.ins[i]) for i in node.op.ahead(len(self.ins))]
        self.draws = "seed" in node.op.schema  # random numbers, by a key that the imperative mode changes
        self.is_lone = is_lone  # nothing else reads its first input
        self.arguments = data_of(node)

    def label(self, e: Edge, spec: Spec) -> str:
        """The layout that an input has for the operator: its own, or for the first one that has none the first that
        fits."""
        if spec.layout or e != self.ins[0]:
            return spec.layout
        return next((layout for layout in self.op.layouts if len(layout) == spec.ndim), "")

    def is_sequence(self, e: Edge, spec: Spec) -> bool:
        """Whether the operator sees the frames of an input one by one."""
        return self.op.by_frame and spec.ndim > 1 and self.label(e, spec).startswith("F")

    def see(self, rows: FrameContext) -> None:
        """Has what it reads seen as rows that are frames. Raises ValueError if it sees other rows."""
        if not self.op.by_frame:
            raise ValueError("it takes sequences whole")
        values = rows.whole.values
        rows.see({e: self.label(e, values[e].spec) for e in self.ins if e in values}, self.arguments)


class Chain:
    """`needed` are the outputs that later stages or the user want; everything else stays in the threads' scratch
    memory."""

    def __init__(self, nodes: list[Node], needed: set[Edge], resolvers: dict[int, Resolver]):
        self.nodes, self.needed = nodes, needed
        reads = [e for n in nodes for e in inputs_of(n)]
        lone = {e for e in reads if reads.count(e) == 1 and e not in needed}
        self.links = [Link(n, resolvers[n.number], not n.inputs or inputs_of(n)[0] in lone) for n in nodes]
        self.wiring = Wiring(nodes, needed)
        self.inputs = [e for e in dict.fromkeys(reads) if e not in self.wiring.root]
        self.plans = PlanCache(self, all(link.op.traced for link in self.links))
        self._drawing = [link.resolver for link in self.links if link.draws]
        self._divisions: dict[tuple, int] = {}  # kinds of batches that are planned in two parts: where
        self._parts: dict[int, tuple[Chain, Chain]] = {}

    def divided(self, at: int) -> tuple[Chain, Chain]:
        """Two chains for batches whose rows are something else from an operator on: frames before it, samples
        behind."""
        if at not in self._parts:
            resolvers = {link.node.number: link.resolver for link in self.links}
            before, behind = self.nodes[:at], self.nodes[at:]
            read = {e for n in behind for e in inputs_of(n)}
            kind = type(self)
            made = kind(before, self.needed | read, resolvers), kind(behind, self.needed, resolvers)
            self._parts.setdefault(at, made)  # those of another thread, if it was quicker
        return self._parts[at]

    def parts(self) -> list[Chain]:
        """The chain, and those that it was divided into."""
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
        """The batch as operators see it: with a row for each frame where they take sequences apart."""
        first = self.links[0]
        if first.op.by_frame:
            for e in first.ins:
                spec = ctx.values[e].spec
                if first.is_sequence(e, spec):
                    return FrameContext(ctx, spec.shape[:, 0])
        return ctx

    def kind(self, rows: Context) -> tuple | None:
        """All that the rules may decide by, other than columns; None for what is not traced."""
        kind: list[Any] = [resolver.key for resolver in self._drawing]
        if isinstance(rows, FrameContext):
            for link in self.links:
                try:
                    link.see(rows)
                except ValueError:  # the rules say why, or divide the chain there
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
        """The plan of a batch. Whoever has run it tells `plans`. Raises Divided if the chain needs two."""
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
        """Has the rules put all that the plan of a batch needs into a PlanMemory."""
        segment = Segment(self, rows, to).planned()
        segment.narrow()
        to.specs, to.alive = segment.specs, segment.arguments
        to.rows = {e: batch.rows for e, batch in segment.inputs.items()}
        self.lay_out(segment)
        for e in self.wiring.unkept:
            to.described(e, segment.specs[e])

    def lay_out(self, segment: Segment) -> None:
        """Adds what the device reads of a segment whose rules have run."""
        segment.fill_rows()

    def plan_of(self, ctx: Context, at: PlanMemory) -> Any:
        """The plan in these arrays."""
        return CpuPlan(self, ctx, at)

    def _frames_of_none(self, rows: FrameContext) -> dict[Edge, Spec]:
        """What the rules make of one frame of each sequence that has none. Nothing is computed from it, and what they
        refuse is of no extent."""
        none = rows.frames_of_none()
        if none is None or any(link.peeks for link in self.links):
            return {}
        segment = Segment(self, none, PlanMemory())
        with contextlib.suppress(Exception):
            segment.planned()
        return segment.specs
