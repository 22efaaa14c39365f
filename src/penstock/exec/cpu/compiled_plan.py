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
from ...core.rows import TENSOR, address, allocate
from ...core.traced import Untraceable
from ..context import Context
from ..origins import Origin, names_of, origins
from .launch import Launch, execute
from .plan_cache import PlanCache, Planned
from .plan_trace import BoundPlan, PlanTrace, TracedPlan
from .wiring import Edge, inputs_of

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
        named = origins((e for e in plan.rows if ctx.values[e].sources is not None), chain.links)
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
        self._ctx: Context | None = None

    def plan(self, ctx: Context) -> bool:
        self.begin, self._ctx, self.given = time.monotonic_ns(), ctx, {}
        return self._bound.run(ctx)

    def run(self, pool: kernels.Pool) -> None:
        """Runs what is planned."""
        ctx, self._ctx = self._ctx, None  # which an idle plan doesn't keep alive
        assert ctx is not None
        values = ctx.values
        made = self._make()
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
            execute(ctx, self._wiring.native, self._launch.program, pool, self.begin)
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


class ChainPlans(PlanCache[CompiledPlan]):
    """The plans of a chain."""

    def __init__(self, chain: Chain):
        made = {n.number for n in chain.nodes}
        arguments = [(d.source.number, d.index) for n in chain.nodes for d in n.arg_nodes()]
        super().__init__(
            dict.fromkeys(e for e in (*(e for n in chain.nodes for e in inputs_of(n)), *arguments) if e[0] not in made)
        )
        self.chain: Chain = weakref.proxy(chain)  # whose these are
        self._drawing = [link.resolver for link in chain.links if link.draws]
        self._inputs = [e for e in self._reads if any(e in link.ins for link in chain.links)]

    def kind(self, ctx: Context) -> tuple | None:
        """All that the rules may decide by, other than columns; None for what is not traced."""
        kind: list[Any] = [resolver.key for resolver in self._drawing]
        for e in self._inputs:
            batch = ctx.values[e]
            spec = batch.spec
            if spec.stored is not spec.shape:
                return None
            kind += spec.shape.shape[1], spec.dtype, spec.layout, batch.sources is None
        return tuple(kind)

    def _trace(self, ctx: Context) -> TracedPlan:
        return self._segment(self.chain.segment(ctx, self.chain.links[0], PlanTrace())).traced()

    def _segment(self, segment: Any) -> Any:
        for link in self.chain.links:
            if not segment.add(link):
                raise Untraceable("its operators are planned one after the other")
        return segment

    def _bound(self, plan: TracedPlan, ctx: Context) -> CompiledPlan:
        return CompiledPlan(self.chain, plan, ctx)
