# SPDX-License-Identifier: Apache-2.0
"""The plan of a chain on the CPU: all that native code needs to run all steps on each sample."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Buffer, Spec
from ...core.dtypes import from_numpy
from ...core.plan_memory import PlanMemory
from ...core.rows import TENSOR, address, allocate
from ...graph.node import Edge
from ..context import Context, Timing, explain_failure
from ..source_info import Origin, names_of, origins

if TYPE_CHECKING:
    from .chain import Chain


class CpuPlan:
    """The plan of n samples in the arrays `at`, which can be refilled for another batch. Used by one batch at a time.
    It holds only addresses of the arrays: `at` owns the plan, and must be kept alive while it runs."""

    def __init__(self, chain: Chain, ctx: Context, at: PlanMemory):
        wiring = chain.wiring
        self.specs, self._nodes = at.specs, wiring.native
        native = list(zip(wiring.native, wiring.in_place, at.kernels, at.arguments))
        tensors = [wiring.slots[node.number] for node, *_ in native]  # per step: output and input (edge, buffer)
        steps = [
            kernels.Step(kernel, rows.array, *([(None, buffer) for _, buffer in of] for of in of_step))
            for (_, _, kernel, rows), of_step in zip(native, tensors)
        ]
        self._program = kernels.Program(steps, ctx.n)
        slots: dict[Edge, list[Any]] = {e: [] for e in wiring.allocated}
        for (_, in_place, *_), (outs, ins), of_step in zip(native, tensors, self._program.slots):
            for slot, (e, _) in zip(of_step, (*outs, *ins)):
                if e in slots:
                    slots[e].append(slot)
                else:
                    slot.rows = at.shapes[e].address if e in at.shapes else address(at.rows[e])
            if in_place and ins:
                of_step[len(outs)].in_place = True
        named = origins(chain.links, chain.inputs, ctx.values)
        self._placed = (_Placed * len(slots))()
        self._outputs = [
            _Output(e, self.specs[e], slots[e], named.get(e), placed) for e, placed in zip(slots, self._placed)
        ]
        self._wanted, self._shortened = wiring.wanted & slots.keys(), wiring.shortened
        # Edges that alias other memory: those read by kernels, and those returned.
        self._seen = [(at.shapes[e], root) for e, root in wiring.views]
        self._renamed = [(e, wiring.root[e], named.get(e)) for e in wiring.wanted - slots.keys()]

    def run(self, ctx: Context, pool: kernels.Pool, begin: int, given: Mapping[Edge, Batch] | None = None) -> None:
        """Computes the outputs, in memory that is `given` or newly allocated. `begin` is when planning started."""
        values, made = ctx.values, self._make(ctx, given or {})
        for output in self._outputs:
            batch = made[output.edge]
            if output.named is not None:
                batch.sources = names_of(output.named, values)
            output.put(batch)
        for tensors, root in self._seen:
            tensors.data[...] = (made[root] if root in made else values[root]).rows["data"]
        if self._nodes and ctx.n:
            self._execute(ctx, pool, begin)
        for e in self._shortened:
            made[e].shorten()
        for e in self._wanted:
            values[e] = made[e]
        for e, root, name in self._renamed:
            batch = (made[root] if root in made else values[root]).relabel(self.specs[e].copy())
            batch.sources = names_of(name, values)
            values[e] = batch

    def _make(self, ctx: Context, given: Mapping[Edge, Batch]) -> dict[Edge, Batch]:
        """The output batches: those given, and newly allocated ones."""
        outputs, n = self._outputs, ctx.n
        elsewhere = ctx.memory and any(o.edge in ctx.memory for o in outputs)
        if outputs and not given and ctx.sample_of is None and not Batch.guard_bytes and not elsewhere:
            rows, at = allocate(len(outputs) * n, TENSOR)
            if kernels.library().place_batches(self._placed, len(outputs), n, at):
                step = n * TENSOR.itemsize
                return {o.edge: o.made(rows[i * n : (i + 1) * n], at + i * step) for i, o in enumerate(outputs)}
        made = {}
        for o in outputs:
            try:
                made[o.edge] = given[o.edge] if o.edge in given else ctx.allocate(o.spec(), o.edge)
            except (MemoryError, ValueError) as error:
                maker = next(node for node in self._nodes if node.number == o.edge[0])
                raise explain_failure(ctx, maker, error) from None
        return made

    def _execute(self, ctx: Context, pool: kernels.Pool, begin: int) -> None:
        """Runs the steps, and records which samples failed."""
        nodes, program = self._nodes, self._program
        outcome = kernels.Outcome(ctx.status, ctx.n, len(nodes))
        native = time.monotonic_ns()
        failed_before = ctx.status.copy() if ctx.failed else None
        program.run(pool, outcome, ctx.sample_of)
        ctx.timings.append(Timing("chain", [n.number for n in nodes], begin, time.monotonic_ns(), native, outcome))
        if outcome.failed:
            new = ctx.status != 0 if failed_before is None else (ctx.status != 0) & (failed_before == 0)
            for i in new.nonzero()[0].tolist():
                node = nodes[ctx.status[i] - 1]
                ctx.failed[i] = (node, outcome.reason(i), ctx.source_of(node, i))


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

    def __init__(self, edge: Edge, spec: Spec, slots: list[Any], named: Origin, placed: Any):
        self.edge, self.named, self._stored, self._slots = edge, named, np.ascontiguousarray(spec.stored), slots
        self._spec = Spec(self._stored.copy(), spec.dtype, spec.layout)
        self._before, at_before = allocate(self._stored.shape, np.dtype("i8"))
        self._before[...] = -1
        self._placed = placed
        placed.stored, placed.before, placed.ndim = address(self._stored), at_before, self._stored.shape[1]
        placed.dtype = int(from_numpy(spec.dtype))

    def put(self, batch: Batch) -> None:
        """Makes kernels write to a batch."""
        at = batch.rows_address
        for slot in self._slots:
            slot.rows = at

    def spec(self) -> Spec:
        """The output's spec in the current batch."""
        return Spec(self._stored.copy(), self._spec.dtype, self._spec.layout)

    def made(self, rows: np.ndarray, at: int) -> Batch:
        """The batch allocated by native code, with its rows at address `at`."""
        spec, (nbytes, dense, place, same) = self._spec, self._placed.about
        buffer = Buffer.at(place, nbytes)
        if not same:
            spec = self._spec = self.spec()
            spec._dense = bool(dense)
        batch = Batch(spec, rows, (buffer,))
        batch.rows_address, batch._packed = at, bool(dense)
        return batch
