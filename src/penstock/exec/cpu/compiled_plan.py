# SPDX-License-Identifier: Apache-2.0
"""A chain on the CPU whose batches are planned by a program."""

from __future__ import annotations

import ctypes
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Buffer, Spec
from ...core.dtypes import from_numpy
from ...core.op import Arg
from ...core.rows import TENSOR, address, allocate
from ...core.traced import Untraceable
from ...graph.node import DataNode
from ..context import Context
from ..frames import FrameContext
from ..origins import Origin, names_of, origins
from .launch import Launch, execute
from .plan_cache import PlanCache, Planned
from .plan_trace import BoundPlan, PlanTrace, TracedPlan
from .wiring import Edge

if TYPE_CHECKING:
    from .chain import Chain


class CompiledPlan(Planned):
    """A chain that is planned by a program, for batches of n samples. Used by one batch at a time."""

    begin: int

    def __init__(self, chain: Chain, plan: TracedPlan, ctx: Context):
        self._wiring = wiring = chain.wiring(chain.nodes)
        self._bound = bound = BoundPlan(plan)
        self._launch = Launch(wiring, plan.kernels, ctx.n, bound.arguments, bound.shapes)
        # As of a segment: the types and layouts of all edges, and memory for outputs, where it is there already.
        self.specs, self.counts = {e: bound.spec(e) for e in plan.specs}, None
        self.given: dict[Edge, Batch] = {}
        self._launch.prepare(self.specs, {}, {e: bound.address_of_rows(e) for e in plan.rows})
        self._outputs: list[_Output] = []
        self._placed = (_Placed * len(wiring.allocated))()
        named = origins(chain.links, plan.rows, ctx.values)
        for e in wiring.allocated:
            slots = [slot for slot, edge in self._launch.of_batches if edge == e]
            placed = self._placed[len(self._outputs)]
            output = _Output(e, self.specs[e], slots, named.get(e), e in wiring.wanted, placed)
            output.shortened = e in wiring.shortened
            self._outputs.append(output)
        # What is seen in the memory of others: by kernels, and by whoever gets it.
        self._seen = [(self._launch.tensors[e], root) for e, root in wiring.views]
        self._renamed = []
        for e in wiring.wanted - set(wiring.allocated):
            self._renamed.append((e, wiring.root[e], self.specs[e], named.get(e)))

    def plan(self, ctx: Context) -> bool:
        self.begin, self.given = time.monotonic_ns(), {}
        return self._bound.run(ctx)

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        """Runs what is planned."""
        values = ctx.values
        made = [ctx.allocate(o.spec()) for o in self._outputs] if isinstance(ctx, FrameContext) else self._make()
        for output, batch in zip(self._outputs, made):
            if output.named is not None:
                batch.sources = names_of(output.named, values)
            output.put(batch)
        self.given = {}
        whole = (
            {output.edge: batch for output, batch in zip(self._outputs, made)} if self._seen or self._renamed else {}
        )
        for tensors, root in self._seen:
            tensors.data[...] = (whole[root] if root in whole else values[root]).rows["data"]
        if self._wiring.native:
            sample_of = None if ctx.frames is None else ctx.frames.sample_of
            execute(ctx, self._wiring.native, self._launch.program, pool, self.begin, sample_of)
        for output, batch in zip(self._outputs, made):
            if output.shortened:
                batch.shorten()
            if output.wanted:
                values[output.edge] = batch
        for e, root, spec, name in self._renamed:
            batch = (whole[root] if root in whole else values[root]).relabel(spec.copy())
            batch.sources = names_of(name, values)
            values[e] = batch

    def _make(self) -> list[Batch]:
        """The outputs: those that are given, and memory for others."""
        outputs, n, given = self._outputs, self._launch.program.n_rows, self.given
        if outputs and not given and not Batch.guard_bytes:
            rows, at = allocate(len(outputs) * n, TENSOR)
            if kernels.library().place_batches(self._placed, len(outputs), n, at):
                step = n * TENSOR.itemsize
                return [o.made(rows[i * n : (i + 1) * n], at + i * step) for i, o in enumerate(outputs)]
        return [given[o.edge] if o.edge in given else Batch.allocate(o.spec()) for o in outputs]


class _Placed(ctypes.Structure):
    _fields_ = [
        ("stored", ctypes.c_void_p),
        ("before", ctypes.c_void_p),
        ("about", ctypes.c_int64 * 4),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class _Output:
    """An output that becomes a batch."""

    def __init__(self, edge: Edge, spec: Spec, slots: list[Any], named: Origin, wanted: bool, placed: _Placed):
        self.edge, self.stored, self.wanted = edge, spec.stored, wanted
        self.shortened = False  # a kernel says how much of it there is
        self._slots, self.named = slots, named
        self._spec = Spec(self.stored.copy(), spec.dtype, spec.layout)
        self._before, at_before = allocate(self.stored.shape, np.dtype("i8"))
        self._before[...] = -1
        self._placed = placed
        placed.stored, placed.before, placed.ndim = address(self.stored), at_before, self.stored.shape[1]
        placed.dtype = int(from_numpy(spec.dtype))

    def put(self, batch: Batch) -> None:
        """Has kernels write to a batch."""
        at = batch.rows_address
        for slot in self._slots:
            slot.rows = at

    def spec(self) -> Spec:
        """That of the batch at hand."""
        return Spec(self.stored.copy(), self._spec.dtype, self._spec.layout)

    def made(self, rows: np.ndarray, at: int) -> Batch:
        """The batch that was placed, of which the rows are there."""
        spec, (nbytes, dense, place, same) = self._spec, self._placed.about
        buffer = Buffer.at(place, nbytes)
        if not same:
            spec = self._spec = self.spec()
            spec._dense = bool(dense)
        batch = Batch(spec, rows, (buffer,))
        batch.rows_address, batch._packed = at, bool(dense)
        return batch


class _Divided(Untraceable):
    """From an operator on, rows are something else than before."""

    def __init__(self, at: int):
        super().__init__("its operators are planned one after the other")
        self.at = at


class ChainPlans(PlanCache[CompiledPlan]):
    """The plans of a chain."""

    def __init__(self, chain: Chain):
        made = {n.number for n in chain.nodes}
        self.inputs = list(dict.fromkeys(e for link in chain.links for e in link.ins if e[0] not in made))
        self._arguments: dict[Edge, list[Arg]] = {}
        for n in chain.nodes:
            for name, data in n.args.items():
                for d in data if isinstance(data, list) else [data]:
                    if isinstance(d, DataNode):
                        self._arguments.setdefault((d.source.number, d.index), []).append(n.op.schema[name])
        super().__init__(dict.fromkeys((*self.inputs, *self._arguments)))
        self.chain: Chain = weakref.proxy(chain)  # whose these are
        self._perhaps_sequences = chain.links[0].ins if chain.links[0].op.by_frame else []
        self.divided: dict[tuple | None, int] = {}  # kinds of batches that are planned in two parts: where
        self._drawing = [link.resolver for link in chain.links if link.draws]

    def rows(self, ctx: Context) -> Context | None:
        """The batch as operators see it: with a row for each frame where they take sequences apart. None if rules have
        to see it."""
        for e in self._perhaps_sequences:
            layout = ctx.values[e].spec.layout
            if not layout or layout[0] == "F":
                break
        else:
            return ctx
        links = self.chain.links
        counts = links[0].frames_seen(ctx)
        if counts is None:
            return ctx
        if not counts.all():
            return None
        for link in links:
            first = link.ins[0] if link.ins else None
            if first in self.inputs and not (spec := ctx.values[first].spec).layout and link.is_sequence(first, spec):
                why = "sequences without a layout are planned frame by frame"
                self.untraceable[why] = self.untraceable.get(why, 0) + 1
                return None
        try:
            return FrameContext(ctx, counts, self.inputs, self._arguments)
        except ValueError:  # which the rules raise with an explanation
            return None

    def kind(self, ctx: Context | None) -> tuple | None:
        """All that the rules may decide by, other than columns; None for what is not traced."""
        if ctx is None:
            return None
        kind: list[Any] = [resolver.key for resolver in self._drawing]
        if ctx.frames is not None:
            kind.append(ctx.frames.sequences)
        for e in self.inputs:
            batch = ctx.values[e]
            spec = batch.spec
            if spec.stored is not spec.shape:
                return None
            kind += spec.shape.shape[1], spec.dtype, spec.layout, batch.sources is None
        return tuple(kind)

    def _trace(self, ctx: Context) -> TracedPlan:
        return self._segment(self.chain.segment(ctx, self.chain.links[0], PlanTrace())).traced()

    def _segment(self, segment: Any) -> Any:
        for i, link in enumerate(self.chain.links):
            if not segment.add(link):
                raise _Divided(i)
        return segment

    def _refused(self, kind: tuple, why: Untraceable) -> None:
        if isinstance(why, _Divided):
            self.divided[kind] = why.at
        else:
            super()._refused(kind, why)

    def _bound(self, plan: TracedPlan, ctx: Context) -> CompiledPlan:
        return CompiledPlan(self.chain, plan, ctx)
