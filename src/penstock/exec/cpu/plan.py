# SPDX-License-Identifier: Apache-2.0
"""The plan of a chain on the CPU: all that native code needs to run all steps on each sample."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Buffer, Spec
from ...core.plan_memory import PlanMemory
from ...core.rows import TENSOR, address, reserve
from ...graph.node import Edge
from ..context import Context, Timing, explain_failure
from ..source_info import names_of, origins

if TYPE_CHECKING:
    from .chain import Chain

_NONE: Mapping[Edge, Batch] = {}


class Output(NamedTuple):
    """An output batch of a chain with memory of its own: its rows as if this began at address 0; `about`, (2,), are its
    bytes, and whether all samples have one shape."""

    edge: Edge
    spec: Spec
    rows: np.ndarray
    about: np.ndarray


class Outputs:
    """What plans of chains on both devices make: batches, and other views of their memory."""

    def __init__(self, chain: Chain, ctx: Context, at: PlanMemory):
        wiring = chain.wiring
        named = origins(chain.links, chain.inputs, ctx.values)
        self.made = [Output(e, at.specs[e], at.rows[e], at.about[e]) for e in wiring.allocated]
        self._wanted = [(e, named.get(e)) for e in wiring.allocated if e in wiring.wanted]
        self._views = [(e, wiring.root[e], at.specs[e], named.get(e)) for e in wiring.returned]
        self._placed = at.placed

    def placed(self) -> list[tuple[int, Spec]]:
        """The bytes and the spec of the current batch of each output, first of those with memory of their own."""
        placed = self._placed
        if not placed:
            for o in self.made:
                nbytes, dense = o.about.tolist()
                spec = o.spec.copy()
                spec._dense = bool(dense)
                placed.append((nbytes, spec))
            placed += [(0, spec.copy()) for _, _, spec, _ in self._views]
        return placed

    def publish(self, made: Mapping[Edge, Batch], values: dict[Edge, Batch]) -> None:
        """Stores the batches that are read outside of the chain."""
        for e, origin in self._wanted:
            values[e] = batch = made[e]
            if origin is not None:
                batch.sources = names_of(origin, values)
        if not self._views:
            return
        for (e, root, _, origin), (_, spec) in zip(self._views, self.placed()[len(self.made) :]):
            values[e] = (made[root] if root in made else values[root]).relabel(spec)
            values[e].sources = names_of(origin, values)


class CpuPlan:
    """The plan of n samples in the arrays `at`, which can be refilled for another batch. Used by one batch at a time.
    It holds only addresses of the arrays: `at` owns the plan, and must be kept alive while it runs."""

    def __init__(self, chain: Chain, ctx: Context, at: PlanMemory):
        wiring = chain.wiring
        self._nodes, self._shortened = [c.node for c in chain.called], wiring.shortened
        tensors = [(c.outs, [] if c.op.by_address else c.ins) for c in chain.called]
        steps = [
            kernels.Step(kernel, rows.array, *([(at.rows[e], wiring.buffer(e)) for e in edges] for edges in of_step))
            for of_step, kernel, rows in zip(tensors, at.kernels, at.arguments)
        ]
        self._program = kernels.Program(steps, ctx.n)
        self._slots: dict[Edge, list[Any]] = {e: [] for e in wiring.allocated}  # where kernels find the batches
        for c, (outs, ins), of_step in zip(chain.called, tensors, self._program.slots):
            for slot, e in zip(of_step, (*outs, *ins)):
                self._slots.get(e, []).append(slot)
            if ins and c.op.in_place and c.is_lone:
                of_step[len(outs)].in_place = True
        self._outputs = Outputs(chain, ctx, at)
        # Edges that alias other memory and are read by kernels.
        self._seen = [(at.rows[e]["data"], root) for e, root in wiring.views]

    def run(self, ctx: Context, pool: kernels.Pool, begin: int, given: Mapping[Edge, Batch] = _NONE) -> None:
        """Computes the outputs, in memory that is `given` or newly allocated. `begin` is when planning started."""
        values, made = ctx.values, {}
        for k, o in enumerate(self._outputs.made):
            batch = given[o.edge] if o.edge in given else self._allocated(ctx, o, *self._outputs.placed()[k])
            made[o.edge] = batch
            for slot in self._slots[o.edge]:
                slot.rows = batch.rows_address
        for data, root in self._seen:
            data[...] = (made[root] if root in made else values[root]).rows["data"]
        if self._nodes and ctx.n:
            self._execute(ctx, pool, begin)
        for e in self._shortened:
            made[e].shorten()
        self._outputs.publish(made, values)

    def _allocated(self, ctx: Context, output: Output, nbytes: int, spec: Spec) -> Batch:
        rows, at = reserve(ctx.n, TENSOR)
        ctypes.memmove(at, address(output.rows), rows.nbytes)  # a third of the time of NumPy's copy
        try:
            return Batch.in_block(spec, rows, at, nbytes, None, ctx.memory.get(output.edge, Buffer))
        except MemoryError as error:
            maker = next(node for node in self._nodes if node.number == output.edge[0])
            raise explain_failure(ctx, maker, error) from None

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
