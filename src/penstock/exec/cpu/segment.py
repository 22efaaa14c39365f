# SPDX-License-Identifier: Apache-2.0
"""Runs the rules of a chain's operators for one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.dtypes import from_numpy
from ...core.errors import InternalError
from ...core.plan_memory import PlanMemory
from ...core.rows import TENSOR, check_dims
from ...core.traced import is_constant, plain
from ...core.tracing import IMMEDIATE
from ...graph.node import Edge, Node
from ..context import Context, cause_of, explain_failure
from ..frames import FrameContext, check_frames

if TYPE_CHECKING:
    from .chain import Chain, Link

_INT64 = np.dtype("i8")


class Divided(Exception):
    """From operator `at` on, the meaning of rows changes between frames and samples."""

    def __init__(self, at: int):
        super().__init__(at)
        self.at = at


class Segment:
    """The results of the rules of a chain's operators for a batch: the specs of all edges, and arguments. The rules
    read their inputs from the PlanMemory: arrays, or traced columns."""

    def __init__(self, chain: Chain, ctx: Context, to: PlanMemory):
        self.chain, self.ctx, self.to = chain, ctx, to
        self.specs: dict[Edge, Spec] = {}
        self.inputs: dict[Edge, Batch] = {}
        self.arguments: list[Any] = []  # per operator
        self._labels: dict[Edge, str] = {}  # layouts assumed for edges without a layout

    def planned(self) -> Segment:
        """Runs the rules and returns self. Raises Divided if the operators do not agree on what a row is."""
        for i, link in enumerate(self.chain.links):
            try:
                fits = self._fits(link)
                if fits:
                    self._add(link)
            except Exception as e:
                raise explain_failure(self.ctx, link.node, e) from cause_of(e)
            if not fits:
                raise Divided(i)
        return self

    def _fits(self, link: Link) -> bool:
        """Whether an operator agrees with the previous ones on what a row is."""
        ctx, framed = self.ctx, self.ctx.sample_of is not None
        if isinstance(ctx, FrameContext):
            try:
                link.see(ctx)
            except ValueError:
                if not self.arguments:
                    raise
                return False
        if not self.arguments:
            return True
        has_frames = False
        for e in link.ins:
            if e in self.specs and e not in self.inputs:
                spec = self.specs[e]
                # Outside this segment it has no layout, and readers may assume different ones.
                if not spec.layout and (framed or (not link.is_lone and link.label(e, spec))):
                    return False
                has_frames |= framed or link.is_sequence(e, spec)
            else:
                spec = ctx.values[e].spec
                if self._labels.get(e, label := link.label(e, spec)) != label:
                    return False
                has_frames |= e in ctx.sequences if isinstance(ctx, FrameContext) else link.is_sequence(e, spec)
        return has_frames == framed

    def _add(self, link: Link) -> None:
        ctx, op, to = self.ctx, link.op, self.to
        for e in link.ins:
            if e not in self.specs:
                batch = ctx.values[e]
                if not batch.spec.layout:
                    self._labels[e] = link.label(e, batch.spec)
                self.inputs[e] = to.take_in(e, batch)
                self.specs[e] = self.inputs[e].spec
        for e in link.ins[:1]:
            self.specs[e] = _with_layout(link.node, self.specs[e], ctx.sample_of is not None)
        a = link.resolver.resolve(ctx)
        a.native, a.sample_of = to.native, to.sample_of(ctx)
        to.read(a, link.resolver)
        specs = [self.specs[e] for e in link.ins]
        a.batches = [None] * len(specs)
        for i, e in link.peeks:
            a.batches[i] = self.inputs[e]
        op.plan(a, *specs)
        outs = op.outputs(a, *specs)
        for e, spec in zip(link.outs, outs if isinstance(outs, tuple) else (outs,)):
            check_dims(spec.ndim)
            self.specs[e] = to.whole(spec)
        self.arguments.append(a)

    def narrow(self) -> None:
        """Narrows operators' outputs to the windows that are read."""
        native, arguments = self.to.native, {k.node.number: (k, a) for k, a in zip(self.chain.links, self.arguments)}
        for node, axes in self.chain.wiring.narrow:
            link, a = arguments[node.number]
            x = self.specs[link.ins[0]]
            try:
                region = node.op.region(a, x, self.specs[link.outs[0]])
            except Exception as error:
                raise explain_failure(self.ctx, node, error) from None
            if region is None:
                continue
            windows, at = native.allocate((2, x.n, x.ndim), _INT64)
            windows[0], windows[1] = region
            whole = sum(1 << d for d, name in enumerate(x.layout or "?" * x.ndim) if name not in axes)
            if not native.call("settle_windows", at, at + windows.nbytes // 2, x.shape, x.n, x.ndim, whole):
                raise InternalError(f"{node!r} asks for a region outside of its input")
            self.specs[link.ins[0]] = x.windowed(*windows)

    def lay_out(self, e: Edge) -> None:
        """Adds the rows of an edge for memory that begins at address 0, and its `about` (PlanMemory), computed now or
        recorded in a program."""
        wiring, to, spec = self.chain.wiring, self.to, self.specs[e]
        if e in to.rows:
            return
        frames = to.sample_of(self.ctx) if e in wiring.kept or e in wiring.wanted else None
        is_same = frames is None and wiring.root[e] == e and is_constant(spec.stored)  # for all batches
        native, stored = (IMMEDIATE, plain(spec.stored)) if is_same else (to.native, spec.stored)
        to.rows[e], at_rows = native.allocate(spec.n, TENSOR)
        to.about[e], at_about = native.allocate(2, _INT64)
        numbers = spec.n, spec.ndim, int(from_numpy(spec.dtype)), self.chain.made_of.guard_bytes
        name, of = ("lay_out_batch", ()) if frames is None else ("lay_out_frames", (frames,))
        try:
            if not native.call(name, stored, *numbers, *of, at_rows, at_about):
                if frames is not None:
                    check_frames(plain(spec.stored), plain(frames))
                raise MemoryError(f"no memory is large enough for samples of the shapes {spec.stored.tolist()[:4]}...")
        except (MemoryError, ValueError) as error:
            maker = next(n for n in self.chain.nodes if n.number == e[0])
            raise explain_failure(self.ctx, maker, error) from None

    def fill_rows(self) -> list[tuple[kernels.Kernel, Any]]:
        """Fills the argument rows of all kernels."""
        called: list[tuple[kernels.Kernel, Any]] = []
        for link, a in zip(self.chain.links, self.arguments):
            if self.ctx.n and not link.op.aliases:
                try:
                    around = [self.specs[e] for e in (*link.ins, *link.outs)]
                    kernel = kernels.kernel(link.op.kernel_for(a, *around))
                    rows = self.to.fill_rows(kernel, self.ctx.n, link.op.params(a, *around), link.node.name)
                except Exception as e:
                    raise explain_failure(self.ctx, link.node, e) from cause_of(e)
                called.append((kernel, rows))
        return called


def _with_layout(node: Node, spec: Spec, is_frame: bool) -> Spec:
    """Checks the layout against those the operator accepts; a batch without one gets the first that fits."""
    accepted = node.op.layouts
    if not accepted:
        return spec
    seen = "F" + spec.layout if is_frame else spec.layout
    if spec.layout:
        if seen in accepted or spec.layout in accepted:
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
