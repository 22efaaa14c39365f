# SPDX-License-Identifier: Apache-2.0
"""Runs a chain on the GPU: planned like a chain of the CPU, then grouped into as few launches as can be, whose
arguments travel in one copy. Nothing waits for the GPU."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..core import kernels
from ..core.batch import Batch, Spec
from ..core.rows import ArgumentRows
from ..gpu.batch import DeviceBatch
from ..gpu.launch import Call, Fusion
from ..gpu.memory import Block
from .chain import Chain, Link, _Segment
from .context import Context, Timing, explain_failure
from .frames import fold
from .gpu import GpuPass, Packing
from .gpu_launch import launch as start
from .wiring import Edge, Wiring


class GpuChain(Chain):
    """A chain whose nodes run on the GPU."""

    can_replay = False

    def segment(self, ctx: Context, first: Link, record: Any = None) -> GpuSegment:
        return GpuSegment(self, ctx, first)


class GpuSegment(_Segment):
    chain: GpuChain

    def run(self, pool: kernels.Pool) -> None:
        gpu: GpuPass = self.ctx.gpu
        wiring = self.chain.wiring([c.node for c in self.calls])
        planned = {c.node.number: c for c in self.calls}
        for node, axes in wiring.narrow:
            self._narrow(planned[node.number], axes)
        batches: dict[Edge, Batch] = {}
        rows: dict[Edge, np.ndarray] = {}
        for e, batch in self.imported.items():
            batches[e], rows[e] = batch, batch.rows
            if isinstance(batch, DeviceBatch):
                batch.used_on(gpu.stream)
        for e in wiring.allocated:
            batches[e], rows[e] = fold(self.specs[e], self.counts, gpu.allocate)
        begin = gpu.timer()
        native = time.monotonic_ns()
        if self.n_rows:
            self._launch(gpu, wiring, rows)
        end = gpu.timer()
        gpu.session.timed(self.calls[0].node.number, begin, end)
        numbers = [c.node.number for c in self.calls]
        self.ctx.timings.append(Timing("gpu", numbers, self.begin, time.monotonic_ns(), native))
        self._publish(wiring, batches)

    def _launch(self, gpu: GpuPass, wiring: Wiring, rows: dict[Edge, np.ndarray]) -> None:
        number: dict[Edge, int] = {}
        specs: list[Spec] = []

        def tensor(e: Edge) -> int:
            if e not in number:
                number[e] = len(specs)
                specs.append(self.specs[e])
            return number[e]

        packing = Packing()
        calls: list[Call] = []
        filled: list[tuple[kernels.Kernel, ArgumentRows]] = []
        pointers: list[tuple[np.ndarray, str, int, np.ndarray]] = []
        for c in self.calls:
            op = c.node.op
            if op.aliases:
                continue
            try:
                of_call = [self.specs[e] for e in (*c.ins, *c.outs)]
                kernel = kernels.kernel(op.kernel_for(c.a, *of_call))
                filled.append((kernel, rows_of := gpu.session.rows.take(kernel, self.n_rows)))
                args = self._arguments(kernel, rows_of, op.params(c.a, *of_call), packing, pointers)
            except Exception as e:
                raise explain_failure(self.ctx, c.node, e, self.sample_of) from (e if "[internal" in str(e) else None)
            ins = [tensor(e) for i, e in enumerate(c.ins) if i not in op.ahead(len(c.ins))]
            calls.append(Call(kernel.path, [tensor(e) for e in c.outs], ins, args))
        if not calls:
            return
        launches = self._fusion(wiring, calls, {number[e] for e in wiring.allocated if e in number}, number).plan(
            calls, specs, self.n_rows
        )
        edges = list(number)
        at_args = [packing.add(c.args) for c in calls if c.args is not None]
        at_rows: dict[int, int] = {}
        at_shapes: dict[int, int] = {}
        alive: list[Any] = []
        for launch in launches:
            for t in launch.tensors:
                if t not in at_rows:
                    at_rows[t] = packing.add(self._rows_of(gpu, edges[t], rows, wiring, alive))
            for t in launch.shapes:
                if t not in at_shapes:
                    at_shapes[t] = packing.add(specs[t].packed())
        block = packing.place(gpu)
        for args, field, at, step in pointers:
            args[field] = packing.base + at + step
        packing.send(gpu)
        for kernel, rows_of in filled:
            gpu.session.rows.give(kernel, self.n_rows, rows_of)
        scratch: dict[int, Block] = {}  # the launches of a group share theirs
        for launch in launches:
            group = launch.calls[0]
            if launch.scratch and group not in scratch:
                size = max(other.scratch for other in launches if other.calls[0] == group)
                scratch[group] = gpu.take(size)
                if launch.zero:
                    gpu.stream.fill(scratch[group].address, 0, size)
            at_tensors = [packing.base + at_rows[t] for t in launch.tensors]
            at_tensors += [packing.base + at_shapes[t] for t in launch.shapes]
            addresses = [packing.base + at_args[c] for c in launch.calls]
            where = scratch[group].address if group in scratch else 0
            shape = (launch.grid, launch.block, launch.shared)
            start(gpu, launch.source, launch.entry, *shape, at_tensors, addresses, where, self.n_rows)
        del block

    def _arguments(
        self, kernel: kernels.Kernel, rows: ArgumentRows, columns: dict[str, Any], packing: Packing, pointers: list
    ) -> np.ndarray:
        """The argument rows; the arrays behind pointers are packed too, their addresses filled in later."""
        if not kernel.pointers:
            rows.fill(columns)
            return rows.array
        rows.fill({k: v for k, v in columns.items() if k not in kernel.pointers})
        for field in kernel.pointers & columns.keys():
            values = np.ascontiguousarray(columns[field])
            step = 0 if len(values) == 1 else values.strides[0]
            steps = step * np.arange(self.n_rows, dtype="u8")
            pointers.append((rows.array, field, packing.add(values), steps))
        return rows.array

    def _fusion(self, wiring: Wiring, calls: list[Call], kept: set[int], number: dict[Edge, int]) -> Fusion:
        """How calls are grouped; it depends on kernels and wiring alone and is found once."""
        key = tuple(c.kernel for c in calls), tuple(number), id(wiring)
        cache = self.chain.fusions
        if key not in cache:
            cache[key] = Fusion(calls, kept)
        return cache[key]

    def _rows_of(self, gpu: GpuPass, e: Edge, rows: dict, wiring: Wiring, alive: list) -> np.ndarray:
        """Where the samples of an edge lie; what is only read within the segment gets memory now."""
        root = wiring.root.get(e, e)
        if root not in rows:
            batch = gpu.allocate(self.specs[root])
            alive.append(batch)
            rows[root] = batch.rows
        if root == e:
            return rows[e]
        out = self.specs[e].packed()
        out["data"] = rows[root]["data"]
        return out
