# SPDX-License-Identifier: Apache-2.0
"""Runs a chain on the GPU: planned like a chain of the CPU, then grouped into as few launches as can be, whose
arguments travel in one copy. Nothing waits for the GPU. Programs make the plans of later batches, as on the CPU."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.errors import InternalError
from ...core.rows import ArgumentRows, Unread
from ...gpu.driver import OutOfDeviceMemory
from ...gpu.launch import Call, Fusion, Launch
from ...gpu.session import GpuPass
from ..context import Context, cause_of, explain_failure
from ..cpu.chain import Chain, Link, _Call, _Segment
from ..cpu.plan_cache import PlanCache
from ..cpu.plan_trace import PlanTrace
from ..cpu.wiring import Edge, Wiring
from ..frames import fold
from ..origins import origins
from .plan import INPUT, MEMORY, OUTPUTS, WORKSPACE, GpuPlan, Image, Output, Started, Where

_NAMED = 3  # operators that an error of memory names
_ALIGNED = 256  # bytes, of tensors in the workspace


class GpuChain(Chain):
    """A chain whose nodes run on the GPU."""

    def _cache(self) -> PlanCache:
        from .compiled_plan import GpuChainPlans  # which imports this module

        return GpuChainPlans(self)

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        try:
            if not self._run_by_program(ctx, pool):
                self._run_by_rules(ctx, pool)
        except OutOfDeviceMemory as e:
            raise self._explained(ctx, e) from None

    def _explained(self, ctx: Context, error: OutOfDeviceMemory) -> Exception:
        """Which operator asked for how much; the one with the largest output is named first."""
        nodes = {n.number: n for n in self.nodes}
        asked = sorted(error.asked, key=lambda x: -x[1])
        node = nodes[asked[0][0]] if asked else self.links[0].node
        parts = [f"{nodes[k].op.display_name()} {_size(nbytes)}" for k, nbytes in asked[:_NAMED]]
        parts += [f"{len(asked) - _NAMED} other outputs {_size(sum(b for _, b in asked[_NAMED:]))}"] * (
            len(asked) > _NAMED
        )
        parts += [f"what lies between and their arguments {_size(error.shared)}"] * bool(error.shared)
        told = f"{error}.\nWhat was asked for: {', '.join(parts)}" if asked else str(error)
        return explain_failure(ctx, node, MemoryError(told))

    def _run_by_rules(self, ctx: Context, pool: kernels.Pool) -> None:
        self.plans["by rules"] += 1
        links = self.links
        while links:
            begin = time.monotonic_ns()
            plan = self._by_rules(ctx, links)
            plan.run(ctx, begin)
            links = links[plan.links :]

    def _by_rules(self, ctx: Context, links: list[Link]) -> GpuPlan:
        """The plan of a segment of the first link, and of as many behind it as fit."""
        segment: GpuSegment | None = None
        for link in links:
            try:
                if segment is None:
                    segment = GpuSegment(self, ctx, link)
                if not segment.add(link):
                    break
            except Exception as e:
                sample_of = segment.sample_of if segment is not None else None
                raise explain_failure(ctx, link.node, e, sample_of) from cause_of(e)
        assert segment is not None
        return segment.plan()


def _size(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.1f} MiB" if nbytes < 100 << 20 else f"{nbytes >> 20} MiB"


class _OfNoMemory(Batch):
    """A batch in memory that begins at 0, for its rows."""

    __slots__ = ("nbytes",)
    guard_bytes = 0
    nbytes: int

    @classmethod
    def of(cls, spec: Spec) -> _OfNoMemory:
        batch = cls.allocate(spec, None, _Nowhere)
        batch.nbytes = batch.owners[0].nbytes
        return batch


class _Nowhere:
    address = 0

    def __init__(self, nbytes: int):
        self.nbytes = nbytes


class GpuSegment(_Segment):
    chain: GpuChain

    def __init__(self, chain: Chain, ctx: Context, first: Link, trace: PlanTrace | None = None):
        super().__init__(chain, ctx, first, trace)
        self._numbers: dict[Edge, int] = {}
        self._tensors: list[Spec] = []

    def plan(self) -> GpuPlan:
        """The plan of what was added."""
        gpu: GpuPass = self.ctx.gpu
        wiring = self._narrowed()
        self._inputs = list(self.imported)
        outputs = self._outputs(wiring)
        places = {o.edge: (o.where, rows) for o, rows in outputs}
        image, workspace = Image(), 0
        starts: list[Started] = []
        if self.n_rows:
            starts, workspace = self._launches(gpu, wiring, image, places)
            if not starts:
                image = Image()
        views = self._views(wiring, {o.edge: o for o, _ in outputs})
        numbers = [c.node.number for c in self.calls]
        new = [o for o, _ in outputs]
        return self._make(gpu.session, numbers, self._inputs, self.n_rows, image, starts, workspace, [*new, *views])

    def _make(self, *arguments: Any) -> GpuPlan:
        return GpuPlan(*arguments)

    # The batches given out ----------------------------------------------------------------------------------------

    def _outputs(self, wiring: Wiring) -> list[tuple[Output, np.ndarray]]:
        """Those in memory of their own, with the rows that kernels write."""
        named, made = origins(self.calls, self.imported, self.ctx.values), []
        for k, e in enumerate(wiring.allocated):
            batch, rows = fold(self.specs[e], self.counts, self.frames_of_none(e), _OfNoMemory.of)
            assert isinstance(batch, _OfNoMemory)
            where = Where(MEMORY, OUTPUTS + k)
            wanted = e in wiring.wanted
            made.append((Output(e, batch.spec, batch.rows, batch.nbytes, where, None, named.get(e), wanted), rows))
        return made

    def _views(self, wiring: Wiring, made: dict[Edge, Output]) -> list[Output]:
        """Those that are seen in the memory of others."""
        named, views = origins(self.calls, self.imported, self.ctx.values), []
        for c in self.calls:
            for e in c.outs:
                root = wiring.root[e]
                if e not in wiring.wanted or root == e:
                    continue
                if self.counts is not None:
                    raise InternalError(f"{c.node!r} renames frames")
                spec = self.specs[e]
                rows = spec.packed()
                if root in made:
                    where = made[root].where
                    rows["data"] = made[root].rows["data"]
                else:
                    where = Where(INPUT, self._inputs.index(root))
                views.append(Output(e, spec, rows, 0, where, root, named.get(e), True))
        return views

    # The launches -------------------------------------------------------------------------------------------------

    def _tensor(self, e: Edge) -> int:
        if e not in self._numbers:
            self._numbers[e] = len(self._tensors)
            self._tensors.append(self.specs[e])
        return self._numbers[e]

    def _launches(
        self, gpu: GpuPass, wiring: Wiring, image: Image, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> tuple[list[Started], int]:
        """The launches, and the bytes of the workspace that they need."""
        calls: list[Call] = []
        at_args: list[int] = []
        for c, kernel, columns in self._kernels():
            rows, at = self._arguments(kernel, columns, image, len(calls))
            calls.append(self._call(c, kernel, rows))
            at_args.append(at)
        if not calls:
            return [], 0
        launches = self._chosen(wiring, calls)
        scratch = max((x.scratch for x in launches), default=0)
        workspace = self._place(wiring, launches, -(-scratch // _ALIGNED) * _ALIGNED, places)
        at_rows: dict[int, int] = {}
        at_shapes: dict[int, int] = {}
        edges = list(self._numbers)
        for launch in launches:
            for t in launch.tensors:
                if t not in at_rows:
                    at_rows[t] = image.add_rows(*self._rows_of(edges[t], wiring, places))
            for t in launch.shapes:
                if t not in at_shapes:
                    at_shapes[t] = image.add(self._shapes_of(edges[t]))
        starts, begun = [], set()
        for x in launches:
            group, zeroed = x.calls[0], 0  # the launches of a group share their scratch
            if x.scratch and group not in begun:
                begun.add(group)
                zeroed = max(o.scratch for o in launches if o.calls[0] == group) if x.zero else 0
            tensors = [at_rows[t] for t in x.tensors] + [at_shapes[t] for t in x.shapes]
            function = gpu.session.function(x.source, x.entry, x.shared)
            where = 0 if group in begun else None
            starts.append(
                Started(function, x.grid, x.block, x.shared, tensors, [at_args[c] for c in x.calls], where, zeroed)
            )
        return starts, workspace

    def _chosen(self, wiring: Wiring, calls: list[Call]) -> list[Launch]:
        """The launches for the batch at hand."""
        return self._fusion(wiring, calls).plan(calls, self._tensors, self.n_rows)

    def _call(self, c: _Call, kernel: kernels.Kernel, rows: np.ndarray) -> Call:
        ins = [self._tensor(e) for i, e in enumerate(c.ins) if i not in c.node.op.ahead(len(c.ins))]
        return Call(kernel.path, [self._tensor(e) for e in c.outs], ins, rows)

    def _arguments(
        self, kernel: kernels.Kernel, columns: dict[str, Any], image: Image, k: int
    ) -> tuple[np.ndarray, int]:
        """Fills the argument rows of call k and puts them into the image, with the arrays behind pointers; the rows,
        and where they will lie."""
        rows = ArgumentRows(self.n_rows, kernel.args, kernel.pointers)
        unread = {field: x.name for field, x in columns.items() if type(x) is Unread}
        rows.fill({field: 0 if field in unread else x for field, x in columns.items() if field not in kernel.pointers})
        return rows.array, self._put(rows, {f: columns[f] for f in kernel.pointers & columns.keys()}, unread, image)

    def _put(self, rows: ArgumentRows, pointers: dict[str, Any], unread: dict[str, str], image: Image) -> int:
        """Puts argument rows into the image: where they will lie."""
        n, step, fields = self.n_rows, rows.array.itemsize, rows.array.dtype.fields
        assert fields is not None
        for field, column in pointers.items():
            values = np.ascontiguousarray(column)
            between = 0 if len(values) == 1 else values.strides[0]
            rows.views[field][...] = image.add(values) + between * np.arange(n, dtype="u8")
        at = image.add(rows.array)
        for field in pointers:
            image.points(at + fields[field][1], step, n)
        for field, name in unread.items():
            image.column(name, at + fields[field][1], step, n, fields[field][0].itemsize, self.sample_of)
        return at

    def _fusion(self, wiring: Wiring, calls: list[Call]) -> Fusion:
        """How calls are grouped; it depends on kernels and wiring alone and is found once."""
        key = tuple(c.kernel for c in calls), tuple(self._numbers), id(wiring)
        cache = self.chain.fusions
        if key not in cache:
            cache[key] = Fusion(calls, {self._numbers[e] for e in wiring.allocated if e in self._numbers})
        return cache[key]

    def _shapes_of(self, e: Edge) -> np.ndarray:
        """Rows of a tensor that is in no memory."""
        return self.specs[e].packed()

    def _place(
        self, wiring: Wiring, launches: list[Launch], begin: int, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> int:
        """Gives what is read within the segment only a place in the workspace, behind `begin`; memory of what has been
        read for the last time is used again. Returns how far they reach."""
        edges = list(self._numbers)
        roots = [[wiring.root.get(edges[t], edges[t]) for t in x.tensors] for x in launches]
        last = {root: i for i, of_launch in enumerate(roots) for root in of_launch}
        used: dict[Edge, tuple[int, int]] = {}
        end = begin
        for i, of_launch in enumerate(roots):
            for root in of_launch:
                if root in places or root in self.imported:
                    continue
                batch = _OfNoMemory.of(self.specs[root])
                size, at = -(-max(batch.nbytes, 1) // _ALIGNED) * _ALIGNED, begin
                for low, high in sorted(used.values()):
                    if at + size <= low:
                        break
                    at = max(at, high)
                used[root] = at, at + size
                end = max(end, at + size)
                batch.rows["data"] += np.uint64(at)
                places[root] = Where(MEMORY, WORKSPACE), batch.rows
            for root in of_launch:
                if last[root] == i:
                    used.pop(root, None)
        return end

    def _rows_of(
        self, e: Edge, wiring: Wiring, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> tuple[np.ndarray, Where]:
        """Where the samples of an edge lie."""
        root = wiring.root.get(e, e)
        if root in places:
            where, rows = places[root]
        else:
            where, rows = Where(INPUT, self._inputs.index(root), self.sample_of), self.imported[root].rows.copy()
            whole = self.ctx.values[root].rows["data"]
            rows["data"] -= whole if self.sample_of is None else whole[self.sample_of]
        if root == e:
            return rows, where
        out = self.specs[e].packed()
        out["data"] = rows["data"]
        return out, where
