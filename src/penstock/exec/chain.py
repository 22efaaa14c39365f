# SPDX-License-Identifier: Apache-2.0
"""Runs a chain: infers all shapes, narrows to the windows that are needed, then takes each sample through all steps
in one native call."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..core import kernels
from ..core.batch import Batch, Spec
from ..core.op import Arguments
from ..graph.node import Node
from .arguments import Resolver
from .context import Context, Timing, explain_failure
from .frames import expand, fold
from .wiring import Edge, Wiring, inputs_of, outputs_of

_SMALL_BYTES = 16 << 10  # rows below this are handed out several at a time


class _Call:
    __slots__ = ("a", "ins", "node", "outs")

    def __init__(self, node: Node, a: Arguments, ins: list[Edge]):
        self.node, self.a, self.ins = node, a, ins
        self.outs = outputs_of(node)


class Chain:
    """`needed` are the outputs that later stages or the user want; everything else stays in the threads' scratch
    memory."""

    def __init__(self, nodes: list[Node], needed: set[Edge], resolvers: dict[int, Resolver]):
        self.nodes, self.needed, self.resolvers = nodes, needed, resolvers
        self._wirings: dict[tuple[int, ...], Wiring] = {}
        self.fusions: dict[tuple, Any] = {}  # of a chain on the GPU: which calls are one launch

    def segment(self, ctx: Context, node: Node) -> _Segment:
        return _Segment(self, ctx, node)

    def wiring(self, nodes: list[Node]) -> Wiring:
        """That of a part of the chain; made once."""
        key = tuple(n.number for n in nodes)
        if key not in self._wirings:
            read_outside = {e for n in self.nodes if n not in nodes for e in inputs_of(n)}
            self._wirings[key] = Wiring(nodes, self.needed | read_outside)
        return self._wirings[key]

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        segment: _Segment | None = None
        for node in self.nodes:
            try:
                while True:
                    if segment is None:
                        segment = self.segment(ctx, node)
                    if segment.add(node):
                        break
                    segment.run(pool)
                    segment = None
            except Exception as e:
                sample_of = segment.sample_of if segment is not None else None
                raise explain_failure(ctx, node, e, sample_of) from (e if "[internal" in str(e) else None)
        assert segment is not None
        segment.run(pool)


class _Segment:
    """Neighbouring operators of a chain that agree on what a row is: a sample, or a frame of a sequence."""

    def __init__(self, chain: Chain, ctx: Context, first: Node):
        self.chain, self.ctx = chain, ctx
        self.begin = time.monotonic_ns()
        self.calls: list[_Call] = []
        self.specs: dict[Edge, Spec] = {}
        self.imported: dict[Edge, Batch] = {}
        self.counts = self._frames_of(first)
        self.sample_of = None if self.counts is None else np.repeat(np.arange(ctx.n, dtype="i4"), self.counts)
        self.n_rows = ctx.n if self.sample_of is None else len(self.sample_of)

    def _frames_of(self, node: Node) -> np.ndarray | None:
        """Frames per sample if the operator wants to see frames and an input is a sequence."""
        if not node.op.frames:
            return None
        for d in node.inputs:
            batch = self.ctx.values.get((d.source.number, d.index))
            if batch is not None and batch.spec.layout.startswith("F") and batch.spec.ndim > 1:
                return batch.spec.shape[:, 0]
        return None

    def add(self, node: Node) -> bool:
        """Plans a call, or says that it belongs to another segment."""
        edges = inputs_of(node)
        if self.calls:
            if self.counts is not None and not node.op.frames:
                return False
            fresh = [e for e in edges if e not in self.specs]
            if any(e not in self.ctx.values for e in fresh):
                return False
            frames = self._frames_of(node) if fresh else self.counts
            if (frames is None) != (self.counts is None) or (frames is not None and (frames != self.counts).any()):
                return False
            if self.counts is None and node.op.frames and any(self._is_sequence(e) for e in edges):
                return False
        for e in edges:
            if e not in self.specs:
                batch = self.ctx.values[e]
                rows = (
                    batch
                    if self.counts is None or not batch.spec.layout.startswith("F")
                    else expand(batch, self.counts)
                )
                if self.sample_of is not None and rows is batch:
                    rows = batch.take(self.sample_of)
                self.imported[e], self.specs[e] = rows, rows.spec
        for e in edges[:1]:
            self.specs[e] = _with_layout(node, self.specs[e], self.counts is not None)
        a = self.chain.resolvers[node.number].resolve(
            self.ctx.n, self.ctx.epoch, self.ctx.position, self.ctx.values, self.counts
        )
        a.sample_of = self.sample_of
        call = _Call(node, a, edges)
        specs = [self.specs[e] for e in edges]
        a.batches = [self.imported[e] if i in node.op.peeks else None for i, e in enumerate(edges)]
        node.op.plan(a, *specs)
        outs = node.op.outputs(a, *specs)
        for e, spec in zip(call.outs, outs if isinstance(outs, tuple) else (outs,)):
            self.specs[e] = spec
        self.calls.append(call)
        return True

    def _is_sequence(self, edge: Edge) -> bool:
        spec = self.specs.get(edge)
        return spec is not None and spec.layout.startswith("F") and spec.ndim > 1

    def run(self, pool: kernels.Pool) -> None:
        wiring = self.chain.wiring([c.node for c in self.calls])
        calls = {c.node.number: c for c in self.calls}
        for node, axes in wiring.narrow:
            self._narrow(calls[node.number], axes)
        batches: dict[Edge, Batch] = dict(self.imported)
        rows: dict[Edge, np.ndarray] = {e: b.rows for e, b in self.imported.items()}
        for e in wiring.allocated:
            batches[e], rows[e] = fold(self.specs[e], self.counts)
        steps: list[kernels.Step] = []
        nodes: list[Node] = []
        alive: list = []
        for c in self.calls:
            if c.node.op.aliases:
                rows[c.outs[0]] = _rows_like(self.specs[c.outs[0]], rows[wiring.root[c.outs[0]]])
                continue
            for e in c.outs:
                if e not in rows:
                    rows[e] = self.specs[e].packed()
            specs = [self.specs[e] for e in (*c.ins, *c.outs)]
            try:
                kernel = kernels.kernel(c.node.op.kernel_for(c.a, *specs))
                args, keep = kernel.rows(self.n_rows, c.node.op.params(c.a, *specs))
            except Exception as e:
                raise explain_failure(self.ctx, c.node, e, self.sample_of) from (e if "[internal" in str(e) else None)
            alive += keep
            outs, ins = ([(rows[e], buffer) for e, buffer in slots] for slots in wiring.slots[c.node.number])
            steps.append(kernels.Step(kernel, args, outs, ins))
            nodes.append(c.node)
        if steps and self.n_rows:
            self._execute(pool, steps, nodes)
        self._publish(wiring, batches)

    def _narrow(self, c: _Call, axes: str) -> None:
        """Lets the producer of a call's first input make only the window that the call reads."""
        x = self.specs[c.ins[0]]
        try:
            region = c.node.op.region(c.a, x, self.specs[c.outs[0]])
        except Exception as error:
            raise explain_failure(self.ctx, c.node, error, self.sample_of) from None
        if region is None:
            return
        origin, stored = np.array(region[0], "i8"), np.array(region[1], "i8")
        for d, name in enumerate(x.layout or "?" * x.ndim):
            if name not in axes:
                origin[:, d], stored[:, d] = 0, x.shape[:, d]
        if origin.size and (min(origin.min(), stored.min()) < 0 or (origin + stored > x.shape).any()):
            raise RuntimeError(f"[internal error] {c.node!r} asks for a region outside of its input")
        self.specs[c.ins[0]] = x.windowed(origin, stored)

    def _execute(self, pool: kernels.Pool, steps: list[kernels.Step], nodes: list[Node]) -> None:
        ctx = self.ctx
        cost = sum(
            self.specs[e].volumes() * self.specs[e].dtype.itemsize for e in (*self.calls[0].ins, *self.calls[-1].outs)
        )
        total = int(cost.sum()) if isinstance(cost, np.ndarray) else 0
        order = np.argsort(-cost, kind="stable").astype("i4") if total else None
        chunk = max(1, self.n_rows // (8 * pool.n)) if total < _SMALL_BYTES * self.n_rows else 1
        failed_before = ctx.status.copy()
        outcome = kernels.Outcome(ctx.status, self.n_rows, len(steps))
        native = time.monotonic_ns()
        pool.run(steps, self.n_rows, outcome, order, self.sample_of, chunk)
        end = time.monotonic_ns()
        ctx.timings.append(
            Timing("chain", [n.number for n in nodes], self.begin, end, native, outcome.spans, outcome.threads)
        )
        for i in ((ctx.status != 0) & (failed_before == 0)).nonzero()[0]:
            node = nodes[ctx.status[i] - 1]
            ctx.failed[int(i)] = (node, outcome.reason(i), ctx.source_of(node, int(i)))

    def _publish(self, wiring: Wiring, batches: dict[Edge, Batch]) -> None:
        """Makes what is wanted known to later stages; each sample keeps the name of where it came from."""
        values = self.ctx.values
        sources: dict[Edge, list[str] | None] = {e: values[e].sources for e in self.imported}
        for c in self.calls:
            names = next((sources[e] for e in c.ins if sources[e] is not None), None)
            for e in c.outs:
                sources[e] = names
                if e not in wiring.wanted:
                    continue
                batch = batches[wiring.root[e]]
                if wiring.root[e] != e:
                    if self.counts is not None:
                        raise RuntimeError(f"[internal error] {c.node!r} renames frames")
                    batch = batch.relabel(self.specs[e])
                batch.sources = names
                values[e] = batch


def _rows_like(spec: Spec, rows: np.ndarray) -> np.ndarray:
    out = spec.packed()
    out["data"] = rows["data"]
    return out


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
        raise ValueError(f"input 0 has the layout '{seen}', which is not supported; supported: {', '.join(accepted)}")
    for layout in accepted:
        if len(layout) == spec.ndim:
            return Spec(spec.shape, spec.dtype, layout, spec.origin, spec.stored)
    raise ValueError(f"input 0 has {spec.ndim} dimensions and no layout; supported layouts: {', '.join(accepted)}")
