# SPDX-License-Identifier: Apache-2.0
"""Runs a chain on the GPU: planned like a chain of the CPU, then grouped into as few launches as can be, whose
arguments travel in one copy. Nothing waits for the GPU. Programs make the plans of later batches, as on the CPU."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.dtypes import from_numpy
from ...core.errors import InternalError
from ...core.rows import TENSOR, ArgumentRows, TensorRows, check_dims
from ...core.tracing import Native
from ...gpu.driver import OutOfDeviceMemory
from ...gpu.launch import Call, Fusion, Launch
from ...gpu.session import Session
from ..context import Context, cause_of, explain_failure
from ..cpu.chain import Chain, Link, _Segment
from ..cpu.plan_cache import PlanCache
from ..cpu.wiring import Edge, Wiring
from ..frames import fold
from ..origins import Origin, origins
from .plan import INPUT, MEMORY, OUTPUTS, GpuPlan, Image, Output, Started

_NAMED = 3  # operators that an error of memory names
_INT64 = np.dtype("i8")


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


class AtOnce(Native):
    """Where everything lies that a plan is made of, as rules say it for one batch: by edge the rows of tensors, of
    batches that are seen in the memory of others, and (2,) the bytes of what is made here and whether all samples have
    one shape. Data of inputs are addresses, other data distances from the memory of what is made here."""

    def __init__(self) -> None:
        self.rows: dict[Edge, Any] = {}
        self.about: dict[Edge, Any] = {}
        self.views: dict[Edge, Any] = {}
        self.shapes: dict[Edge, TensorRows] = {}  # rows of tensors that are in no memory
        self.kernels: list[kernels.Kernel] = []
        self.arguments: list[ArgumentRows] = []
        self.pointers: list[dict[str, np.ndarray]] = []
        self.scratch: list[np.ndarray] = []
        self.sequences: dict[Edge, Batch] = {}  # outputs of which `rows` are the frames

    def fill_rows(self, kernel: kernels.Kernel, n: int, columns: dict[str, Any], name: str) -> np.ndarray:
        rows = ArgumentRows(n, kernel.args, kernel.pointers)
        pointers = {field: np.ascontiguousarray(columns[field]) for field in kernel.pointers & columns.keys()}
        rows.fill({**columns, **pointers})
        self.kernels.append(kernel)
        self.arguments.append(rows)
        self.pointers.append(pointers)
        return rows.array

    def described(self, e: Edge, spec: Spec) -> None:
        self.shapes[e] = TensorRows(spec.n).describe(spec.stored, spec.dtype)

    def fold(self, e: Edge, spec: Spec, counts: np.ndarray, empty: np.ndarray | None) -> None:
        """Lays out an output of sequences."""
        batch, self.rows[e] = fold(spec, counts, empty, _OfNoMemory.of)
        self.about[e] = np.array([batch.owners[0].nbytes, batch.spec.is_dense], _INT64)
        self.sequences[e] = batch


class _OfNoMemory(Batch):
    """A batch in memory that begins at 0, for its rows."""

    __slots__ = ()
    guard_bytes = 0

    @classmethod
    def of(cls, spec: Spec) -> _OfNoMemory:
        return cls.allocate(spec, None, _Nowhere)


class _Nowhere:
    address = 0

    def __init__(self, nbytes: int):
        self.nbytes = nbytes


def lay_out(to: Any, spec: Spec, frames: Any = None) -> tuple[Any, Any]:
    """The rows of a batch in memory that begins at 0, and what is told about it, at once or as a program does it;
    `frames` are the samples of rows that are frames."""
    rows, at_rows = to.result(spec.n, TENSOR)
    about, at_about = to.result(2, _INT64)
    check_dims(spec.ndim)
    numbers = spec.n, spec.ndim, int(from_numpy(spec.dtype))
    name, of = ("lay_out_batch", 0) if frames is None else ("lay_out_frames", frames)
    if not to.call(name, spec.stored, *numbers, of, at_rows, at_about):
        raise MemoryError(f"no memory is large enough for samples of the shapes {spec.stored.tolist()[:4]}...")
    return rows, about


def seen_rows(to: Any, spec: Spec, begins: Any, frames: Any) -> Any:
    """The rows of a batch that is seen in the memory of another, whose samples begin there."""
    rows, _ = lay_out(to, spec, frames)
    rows["data"][...] = begins
    return rows


class GpuSegment(_Segment):
    """Neighbouring operators on the GPU: planned for one batch, or traced."""

    chain: GpuChain

    def plan(self) -> GpuPlan:
        """The plan of what was added."""
        at = AtOnce()
        at.rows = {e: batch.rows for e, batch in self.imported.items()}
        calls, launches = self._lay_out(at)
        named = origins(self.calls, self.imported, self.ctx.values)
        wiring = self.chain.wiring([c.node for c in self.calls])
        return plan_of(self.ctx.gpu.session, self.calls, wiring, calls, launches, at, self.specs, named, self.n_rows)

    def _lay_out(self, to: Any, frames: Any = None) -> tuple[Calls, list[Launch]]:
        """Chooses the launches, and lays out all that they and the batches given out need."""
        wiring, specs = self._narrowed(), self.specs
        called = list(self._kernels()) if self.n_rows else []
        calls = Calls(
            wiring, [(c, kernel, to.fill_rows(kernel, self.n_rows, x, kernel.path)) for c, kernel, x in called]
        )
        launches = self._chosen(calls)
        if self.counts is not None:
            for e in wiring.allocated:
                to.fold(e, specs[e], self.counts, self.frames_of_none(e))
        for e in (*wiring.allocated, *calls.tensors(launches)):
            root = wiring.root.get(e, e)
            if root not in to.rows:
                to.rows[root], to.about[root] = lay_out(to, specs[root], frames)
            if e not in to.rows:
                to.rows[e] = seen_rows(to, specs[e], to.rows[root]["data"], frames)
        for e in calls.shapes(launches):
            to.described(e, specs[e])
        for e in seen_outputs(self.calls, wiring):
            if self.counts is not None:
                raise InternalError(f"edge {e} renames frames")
            root = wiring.root[e]
            begins = 0 if root in self.imported else to.rows[root]["data"]
            to.views[e] = seen_rows(to, specs[e], begins, frames)
        return calls, launches

    def _chosen(self, calls: Calls) -> list[Launch]:
        return calls.launches(self.chain, [self.specs[e] for e in calls.edges], self.n_rows)


def seen_outputs(calls: Iterable[Any], wiring: Wiring) -> list[Edge]:
    """The batches given out that are seen in the memory of others."""
    return [e for c in calls for e in c.outs if e in wiring.wanted and wiring.root[e] != e]


class Calls:
    """The calls of kernels of a segment, with numbers for the edges that they read and write."""

    def __init__(self, wiring: Wiring, called: Iterable[tuple[Any, kernels.Kernel, np.ndarray]]):
        numbers: dict[Edge, int] = {}

        def tensor(e: Edge) -> int:
            return numbers.setdefault(e, len(numbers))

        self.calls = []
        for c, kernel, rows in called:
            ahead = c.node.op.ahead(len(c.ins))
            ins = [tensor(e) for i, e in enumerate(c.ins) if i not in ahead]
            self.calls.append(Call(kernel.path, [tensor(e) for e in c.outs], ins, rows))
        self.edges = list(numbers)
        self._wiring, self._kept = wiring, {numbers[e] for e in wiring.allocated if e in numbers}

    def fusion(self, chain: GpuChain) -> Fusion:
        """How calls are grouped; it depends on kernels and wiring alone and is found once."""
        key = tuple(c.kernel for c in self.calls), tuple(self.edges), id(self._wiring)
        if key not in chain.fusions:
            chain.fusions[key] = Fusion(self.calls, self._kept)
        found: Fusion = chain.fusions[key]
        return found

    def launches(self, chain: GpuChain, specs: list[Spec], n: int, traced: Any = None) -> list[Launch]:
        """`traced` gives the column of an array of arguments, if the launches are traced."""
        calls = self.calls if traced is None else [c._replace(args=traced(c.args)) for c in self.calls]
        return self.fusion(chain).plan(calls, specs, n) if calls else []

    def tensors(self, launches: list[Launch]) -> list[Edge]:
        """Those in memory."""
        return [self.edges[t] for x in launches for t in x.tensors]

    def shapes(self, launches: list[Launch]) -> list[Edge]:
        """Those in none."""
        return [self.edges[t] for x in launches for t in x.shapes]


def plan_of(
    session: Session,
    links: Sequence[Any],
    wiring: Wiring,
    calls: Calls,
    launches: list[Launch],
    at: AtOnce,
    specs: dict[Edge, Spec],
    named: dict[Edge, Origin],
    n: int,
) -> GpuPlan:
    """The plan of operators (`Link` or `_Call`) in the memory `at`."""
    inputs = list(dict.fromkeys(e for c in links for e in c.ins if e not in wiring.root))
    memory = {e: OUTPUTS + k for k, e in enumerate(wiring.allocated)}
    inner = _slots(wiring, calls, launches, memory)
    image, starts, begun = Image(), [], set()
    if launches:
        at_args = [_add_arguments(image, *of_call) for of_call in zip(at.kernels, at.arguments, at.pointers)]
        tensors = {e: (at.rows[e], memory.get(wiring.root.get(e, e))) for e in calls.tensors(launches)}
        at_rows = {e: image.add_rows(*of_tensor) for e, of_tensor in tensors.items()}
        at_shapes = {e: image.add(at.shapes[e].array) for e in dict.fromkeys(calls.shapes(launches))}
    for x in launches:
        group, zeroed = x.calls[0], 0  # the launches of a group share their scratch
        if x.scratch and group not in begun:
            begun.add(group)
            zeroed = max(o.scratch for o in launches if o.calls[0] == group) if x.zero else 0
        places = [at_rows[e] for e in calls.tensors([x])] + [at_shapes[e] for e in calls.shapes([x])]
        function = session.function(x.source, x.entry, x.shared)
        scratch = 0 if group in begun else None
        starts.append(
            Started(function, x.grid, x.block, x.shared, places, [at_args[c] for c in x.calls], scratch, zeroed)
        )
    outputs = []
    for e in wiring.allocated:
        batch = at.sequences.get(e)
        spec, rows = (specs[e], at.rows[e]) if batch is None else (batch.spec, batch.rows)
        wanted = e in wiring.wanted
        outputs.append(Output(e, spec, rows, at.about[e], MEMORY, memory[e], None, named.get(e), wanted))
    for e in seen_outputs(links, wiring):
        root = wiring.root[e]
        where = (MEMORY, memory[root]) if root in memory else (INPUT, inputs.index(root))
        outputs.append(Output(e, specs[e], at.views[e], None, *where, root, named.get(e), True))
    numbers, most = [c.node.number for c in links], max((x.scratch for x in launches), default=0)
    slots = [[at.about[e] for e in slot] for slot in inner]
    return GpuPlan(session, numbers, inputs, n, image, starts, most, at.scratch, slots, outputs)


def _add_arguments(image: Image, kernel: kernels.Kernel, rows: ArgumentRows, pointers: dict[str, np.ndarray]) -> int:
    """Puts argument rows into the image, and the arrays behind pointers: where they will lie."""
    n, step, fields = len(rows.array), rows.array.itemsize, rows.array.dtype.fields
    assert fields is not None
    for field, values in pointers.items():
        between = 0 if len(values) == 1 else values.strides[0]
        rows.views[field][...] = image.add(values) + between * np.arange(n, dtype="u8")
    at = image.add(rows.array)
    for field in pointers:
        image.points(at + fields[field][1], step, n)
    return at


def _slots(wiring: Wiring, calls: Calls, launches: list[Launch], memory: dict[Edge, int]) -> list[list[Edge]]:
    """The tensors that are read within the segment only, by slots of the workspace, whose numbers are put into
    `memory`. A slot is used again as soon as its content has been read for the last time."""
    roots = [[wiring.root.get(e, e) for e in calls.tensors([x])] for x in launches]
    last = {root: i for i, of_launch in enumerate(roots) for root in of_launch}
    slots: list[list[Edge]] = []
    free: list[int] = []
    first = OUTPUTS + len(wiring.allocated)
    for i, of_launch in enumerate(roots):
        for root in of_launch:
            if root in wiring.root and root not in memory:
                if not free:
                    free.append(len(slots))
                    slots.append([])
                k = free.pop()
                slots[k].append(root)
                memory[root] = first + k
        done = {root for root in of_launch if last[root] == i and memory.get(root, 0) >= first}
        free += [memory[root] - first for root in done]
    return slots
