# SPDX-License-Identifier: Apache-2.0
"""Runs a chain: infers all shapes, narrows to the windows that are needed, then takes each sample through all steps
in one native call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.errors import InternalError
from ...core.rows import address, check_dims
from ...core.traced import Untraceable
from ...core.tracing import IMMEDIATE, Native
from ...graph.node import Node
from ..arguments import Resolver
from ..context import Context, cause_of, explain_failure
from ..frames import as_rows, fold
from ..origins import names_of, origins
from .compiled_plan import ChainPlans
from .launch import execute
from .no_frames import NoFrames
from .plan_cache import PlanCache, rules_only
from .plan_trace import PlanTrace, TracedBatch, TracedPlan
from .wiring import Edge, Wiring, inputs_of, outputs_of

_INT64 = np.dtype("i8")


class Link:
    """One operator of a chain: what is the same for every batch."""

    __slots__ = ("draws", "ins", "is_lone", "node", "op", "outs", "peeks", "resolver")

    def __init__(self, node: Node, resolver: Resolver, is_lone: bool = True):
        self.node, self.op, self.resolver = node, node.op, resolver
        self.ins, self.outs = inputs_of(node), outputs_of(node)
        self.peeks = [(i, self.ins[i]) for i in node.op.ahead(len(self.ins))]
        self.draws = "seed" in node.op.schema  # random numbers, by a key that the imperative mode changes
        self.is_lone = is_lone  # nothing else reads its first input

    def label(self, e: Edge, spec: Spec) -> str:
        """The layout that an input has for the operator: its own, or for the first one that has none the first that
        fits."""
        if spec.layout or e != self.ins[0]:
            return spec.layout
        return next((layout for layout in self.op.layouts if len(layout) == spec.ndim), "")

    def is_sequence(self, e: Edge, spec: Spec) -> bool:
        """Whether the operator sees the frames of an input one by one."""
        return self.op.by_frame and spec.ndim > 1 and self.label(e, spec).startswith("F")

    def frames_seen(self, ctx: Context) -> np.ndarray | None:
        """Frames per sample if an input is a sequence."""
        if self.op.by_frame and ctx.frames is None:
            for e in self.ins:
                batch = ctx.values.get(e)
                if batch is not None and self.is_sequence(e, batch.spec):
                    return batch.spec.shape[:, 0]
        return None


class _Call:
    """A link with the arguments it has for one batch."""

    __slots__ = ("a", "ins", "node", "outs", "resolver")

    def __init__(self, link: Link, a: Any):
        self.node, self.a, self.ins, self.outs, self.resolver = link.node, a, link.ins, link.outs, link.resolver


class Chain:
    """`needed` are the outputs that later stages or the user want; everything else stays in the threads' scratch
    memory."""

    def __init__(self, nodes: list[Node], needed: set[Edge], resolvers: dict[int, Resolver]):
        self.nodes, self.needed = nodes, needed
        reads = [e for n in nodes for e in inputs_of(n)]
        lone = {e for e in reads if reads.count(e) == 1 and e not in needed}
        self.links = [Link(n, resolvers[n.number], not n.inputs or inputs_of(n)[0] in lone) for n in nodes]
        self._wirings: dict[tuple[int, ...], Wiring] = {}
        self.fusions: dict[tuple, Any] = {}  # of a chain on the GPU: which calls are one launch
        can_be_traced = not rules_only() and all(link.op.traced for link in self.links)
        self.programs: Any = self._cache() if can_be_traced else None  # None if rules plan all batches
        self.plans = {"by program": 0, "by rules": 0}  # how many batches were planned
        self._parts: dict[int, tuple[Chain, Chain]] = {}

    def divided(self, at: int) -> tuple[Chain, Chain]:
        """Two chains for batches whose rows are something else from an operator on: frames before it, samples
        behind."""
        if at not in self._parts:
            resolvers = {link.node.number: link.resolver for link in self.links}
            before, behind = self.nodes[:at], self.nodes[at:]
            read = {e for n in behind for e in inputs_of(n)}
            kind = type(self)
            self._parts[at] = kind(before, self.needed | read, resolvers), kind(behind, self.needed, resolvers)
        return self._parts[at]

    def parts(self) -> list[Chain]:
        """The chain, and those that it was divided into."""
        return [self, *(c for parts in list(self._parts.values()) for part in parts for c in part.parts())]

    def segment(self, ctx: Context, first: Link, trace: PlanTrace | None = None) -> _Segment:
        return _Segment(self, ctx, first, trace)

    def wiring(self, nodes: list[Node]) -> Wiring:
        """That of a part of the chain; made once."""
        key = tuple(n.number for n in nodes)
        if key not in self._wirings:
            read_outside = {e for n in self.nodes if n not in nodes for e in inputs_of(n)}
            self._wirings[key] = Wiring(nodes, self.needed | read_outside)
        return self._wirings[key]

    def _cache(self) -> PlanCache:
        return ChainPlans(self)

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        try:
            if self._run_by_program(ctx, pool):
                return
        except MemoryError:  # of which the rules say what it was for
            pass
        self._run_by_rules(ctx, pool)

    def _run_by_program(self, ctx: Context, pool: kernels.Pool) -> bool:
        """Whether there is a program for the batch; it is then done."""
        programs = self.programs
        if programs is None:
            return False
        rows = programs.rows(ctx)
        kind = programs.kind(rows)
        plan = programs.take(kind, rows)
        if plan is None:
            if kind not in programs.divided:
                return False
            for part in self.divided(programs.divided[kind]):
                part.run(ctx, pool)
            return True
        plan.run(rows, pool)
        programs.give_back(plan)
        self.plans["by program"] += 1
        if rows is not ctx:  # what was made of sequences frame by frame
            rows.publish(self.wiring(self.nodes).wanted, origins(self.links, programs.inputs, ctx.values))
        return True

    def _run_by_rules(self, ctx: Context, pool: kernels.Pool) -> None:
        self.plans["by rules"] += 1
        segment: _Segment | None = None
        for link in self.links:
            try:
                while True:
                    if segment is None:
                        segment = self.segment(ctx, link)
                    if segment.add(link):
                        break
                    segment.run(pool)
                    segment = None
            except Exception as e:
                sample_of = segment.sample_of if segment is not None else None
                raise explain_failure(ctx, link.node, e, sample_of) from cause_of(e)
        assert segment is not None
        segment.run(pool)


class _Segment:
    """Neighbouring operators of a chain that agree on what a row is: a sample, or a frame of a sequence."""

    def __init__(self, chain: Chain, ctx: Context, first: Link, trace: PlanTrace | None = None):
        self.chain, self.ctx, self.trace = chain, ctx, trace
        self.native: Native = IMMEDIATE if trace is None else trace
        self.begin = time.monotonic_ns()
        self.calls: list[_Call] = []
        self.specs: dict[Edge, Spec] = {}
        self.imported: dict[Edge, Batch] = {}
        self.given: dict[Edge, Batch] = {}  # memory for outputs, where it is there already
        self.labels: dict[Edge, str] = {}  # of what was read that has no layout: the layout it was taken to have
        self.frames = ctx.frames
        self.counts = first.frames_seen(ctx)
        self.framed = self.counts is not None or self.frames is not None  # rows are frames
        if self.counts is not None and trace is not None:
            raise Untraceable("sequences without a layout are planned frame by frame")
        self.sample_of = None if self.counts is None else np.repeat(np.arange(ctx.n, dtype="i4"), self.counts)
        self.n_rows = ctx.n if self.sample_of is None else len(self.sample_of)
        self.no_frames = None if self.counts is None or self.counts.all() else NoFrames(self.counts)

    def add(self, link: Link) -> bool:
        """Plans a call, or says that it belongs to another segment."""
        if self.calls and not self._fits(link):
            return False
        for e in link.ins:
            if e not in self.specs:
                self._take_in(link, e)
        for e in link.ins[:1]:
            self.specs[e] = _with_layout(link.node, self.specs[e], self.framed)
        if self.no_frames is not None:
            self.no_frames.add(link, self.ctx)
        ctx, op = self.ctx, link.op
        a = link.resolver.resolve(ctx.n, ctx.epoch, ctx.position, ctx.values, self.counts)
        a.native, a.sample_of = self.native, self.sample_of
        if self.trace is not None:
            a.sample_of = self.trace.sample_of(ctx)
            if "seed" in op.schema:
                a.random = self.trace.random(a.random)
            for name in link.node.args:
                setattr(a, name, self.trace.argument(link.resolver, name, getattr(a, name)))
                if name in a.row_lengths:
                    raise Untraceable(f"'{name}' has vectors of different lengths")
        specs = [self.specs[e] for e in link.ins]
        a.batches = [None] * len(specs)
        for i, e in link.peeks:
            a.batches[i] = self.imported[e]
            if self.trace is not None:
                a.batches[i] = TracedBatch(self.trace, e, ctx.values[e], self.imported[e])
        op.plan(a, *specs)
        outs = op.outputs(a, *specs)
        for e, spec in zip(link.outs, outs if isinstance(outs, tuple) else (outs,)):
            if op.aliases:  # of others memory is asked for
                check_dims(spec.ndim)
            self.specs[e] = spec if self.trace is None else self.trace.whole(spec)
        self.calls.append(_Call(link, a))
        return True

    def frames_of_none(self, e: Edge) -> np.ndarray | None:
        """The shapes that frames of the samples without any would have."""
        return None if self.no_frames is None else self.no_frames.shapes(e)

    def _fits(self, link: Link) -> bool:
        values, framed = self.ctx.values, self.framed
        if framed and not link.op.by_frame:
            return False
        has_frames = False
        for e in link.ins:
            if e in self.specs and e not in self.imported:
                spec = self.specs[e]
                # Behind this segment it has no layout, and each that reads it may take it for something else.
                if not spec.layout and (framed or (not link.is_lone and link.label(e, spec))):
                    return False
                is_sequence = framed or link.is_sequence(e, spec)
            elif e in values:
                spec = values[e].spec
                is_sequence = link.is_sequence(e, spec) if self.frames is None else e in self.frames.sequences
                if e in self.labels and self.labels[e] != link.label(e, spec):
                    return False
                if is_sequence and self.counts is not None and (spec.shape[:, 0] != self.counts).any():
                    return False
            else:
                return False
            has_frames |= is_sequence
        return has_frames == framed

    def _take_in(self, link: Link, e: Edge) -> None:
        """Makes a batch an input of the segment."""
        batch = rows = self.ctx.values[e]
        if not batch.spec.layout:
            label = self.labels[e] = link.label(e, batch.spec)
            if label.startswith("F") and self.counts is not None:
                batch = batch.relabel(batch.spec.like(layout=label))
        if self.counts is not None and self.sample_of is not None:
            rows = as_rows(batch, self.counts, self.sample_of)
        elif self.trace is not None:
            rows = self.trace.take_in(e, batch)
        self.imported[e], self.specs[e] = rows, rows.spec
        if self.no_frames is not None:
            self.no_frames.take_in(e, batch)

    def run(self, pool: kernels.Pool) -> None:
        wiring = self._narrowed()
        specs = self.specs
        batches: dict[Edge, Batch] = dict(self.imported)
        rows: dict[Edge, np.ndarray] = {}
        places: dict[Edge, int] = {}
        for e, batch in self.imported.items():
            places[e], rows[e] = batch.rows_address, batch.rows
        for e in wiring.allocated:
            if e in self.given:
                batch = batches[e] = self.given[e]
                rows[e], places[e] = batch.rows, batch.rows_address
                continue
            try:
                batch, rows[e] = fold(specs[e], self.counts, self.frames_of_none(e))
            except (MemoryError, ValueError) as error:
                maker = next(c.node for c in self.calls if e in c.outs)
                raise explain_failure(self.ctx, maker, error) from None
            batches[e], places[e] = batch, batch.rows_address if self.counts is None else address(rows[e])
        if wiring.native and self.n_rows:
            self._execute(pool, wiring, rows, places)
            for e in wiring.shortened:
                batches[e].shorten()
        self._publish(wiring, batches)

    def traced(self) -> TracedPlan:
        """What came of tracing. Raises Untraceable."""
        trace, wiring = self.trace, self._narrowed()
        assert trace is not None
        for c, kernel, columns in self._kernels():
            trace.fill_rows(kernel, self.n_rows, columns, c.node.name)
        for e in wiring.unkept:
            trace.described(e, self.specs[e])
        return trace.traced(self.specs)

    def _narrowed(self) -> Wiring:
        """The wiring, once what is made is only what is read."""
        wiring = self.chain.wiring([c.node for c in self.calls])
        if wiring.narrow:
            planned = {c.node.number: c for c in self.calls}
            for node, axes in wiring.narrow:
                self._narrow(planned[node.number], axes)
        return wiring

    def _kernels(self) -> Iterator[tuple[_Call, kernels.Kernel, dict[str, Any]]]:
        """The calls of kernels, with their arguments."""
        for c in self.calls:
            if c.node.op.aliases:
                continue
            try:
                around = [self.specs[e] for e in (*c.ins, *c.outs)]
                kernel = kernels.kernel(c.node.op.kernel_for(c.a, *around))
                yield c, kernel, c.node.op.params(c.a, *around)
            except Exception as e:
                raise explain_failure(self.ctx, c.node, e, self.sample_of) from cause_of(e)

    def _execute(
        self, pool: kernels.Pool, wiring: Wiring, rows: dict[Edge, np.ndarray], places: dict[Edge, int]
    ) -> None:
        ctx, called = self.ctx, list(self._kernels())
        key = tuple(kernel for _, kernel, _ in called), self.n_rows
        launch, alive = wiring.launches.take(*key), []
        for (c, _, columns), to in zip(called, launch.arguments):
            try:
                alive.append(to.fill(columns))
            except Exception as e:
                raise explain_failure(ctx, c.node, e, self.sample_of) from cause_of(e)
        launch.prepare(self.specs, rows, places)
        execute(ctx, wiring.native, launch.program, pool, self.begin, self.sample_of)
        del alive
        wiring.launches.give(*key, launch)

    def _narrow(self, c: _Call, axes: str) -> None:
        """Lets the producer of a call's first input make only the window that the call reads."""
        x = self.specs[c.ins[0]]
        try:
            region = c.node.op.region(c.a, x, self.specs[c.outs[0]])
        except Exception as error:
            raise explain_failure(self.ctx, c.node, error, self.sample_of) from None
        if region is None:
            return
        native = self.native
        windows, at = native.allocate((2, x.n, x.ndim), _INT64)
        windows[0], windows[1] = region
        whole = sum(1 << d for d, name in enumerate(x.layout or "?" * x.ndim) if name not in axes)
        if not native.call("settle_windows", at, at + windows.nbytes // 2, x.shape, x.n, x.ndim, whole):
            raise InternalError(f"{c.node!r} asks for a region outside of its input")
        self.specs[c.ins[0]] = x.windowed(*windows)

    def _publish(self, wiring: Wiring, batches: dict[Edge, Batch]) -> None:
        """Makes what is wanted known to later stages; each sample keeps the name of where it came from."""
        values = self.ctx.values
        found = origins(self.calls, self.imported, values)
        for c in self.calls:
            for e in c.outs:
                if e not in wiring.wanted:
                    continue
                batch = batches[wiring.root[e]]
                if wiring.root[e] != e:
                    if self.counts is not None:
                        raise InternalError(f"{c.node!r} renames frames")
                    batch = batch.relabel(self.specs[e])
                batch.sources = names_of(found.get(e), values)
                values[e] = batch


def _with_layout(node: Node, spec: Spec, is_frame: bool) -> Spec:
    """Checks the layout against what the operator accepts; a batch without one is given the first that fits."""
    accepted = node.op.layouts
    if not accepted:
        return spec
    seen = "F" + spec.layout if is_frame else spec.layout
    if spec.layout:
        if seen in accepted:
            return spec
        if spec.layout in accepted:
            return spec
        raise ValueError(
            f"input 0 has the layout '{seen}', which does not match any of the allowed layouts; Valid layouts are: "
            f"{', '.join(accepted)}"
        )
    for layout in accepted:
        if len(layout) == spec.ndim:
            return Spec(spec.shape, spec.dtype, layout, spec.origin, spec.stored)
    encoded = spec.ndim == 1 and spec.dtype == np.uint8
    raise ValueError(
        f"input 0 has {spec.ndim} dimension{'s' * (spec.ndim != 1)} and no layout; supported layouts: "
        f"{', '.join(accepted)}" + "; bytes of a file become an image by fn.decoders.image" * encoded
    )
