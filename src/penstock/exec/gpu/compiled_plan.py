# SPDX-License-Identifier: Apache-2.0
"""Plans of GPU segments that a program computes for each batch, as those of chains of the CPU (exec/cpu/plan_cache.py):
for pictures whose sizes never come again. The image of the plan is memory of the program; places and sizes follow from
the extents that it computes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Spec
from ...core.dtypes import from_numpy
from ...core.program import RESULT, Pointer, Value
from ...core.rows import TENSOR, Unread
from ...gpu.decided import OddBatch, chosen, expect
from ...gpu.launch import Call, Launch
from ..context import Context
from ..cpu.chain import Chain, _Call
from ..cpu.compiled_plan import ChainPlans
from ..cpu.plan_cache import Planned
from ..cpu.plan_trace import BoundPlan, PlanTrace, TracedPlan
from ..cpu.wiring import Edge, Wiring
from ..origins import origins
from .chain import GpuSegment
from .plan import HERE, INPUT, MEMORY, OUTPUTS, GpuPlan, Image, Output, Where

_ALIGNED = 256
_INT64 = np.dtype("i8")


class GpuPlanTrace(PlanTrace):
    """The program of a segment on the GPU. Of what it lays out, the values are among `more`: of the edges' rows, and of
    (2,) their bytes and whether all samples have one shape."""

    def unread(self, rows: Any, field: str, column: Unread) -> None:
        """The image is patched with them."""
        self.more.setdefault(("unread", len(self.kernels)), {})[field] = column.name

    def at_hand(self, spec: Spec) -> Spec:
        """That of the batch at hand, by which launches are chosen."""
        return Spec(self.values(self.settled(spec.stored)), spec.dtype, spec.layout)

    def of(self, key: Any) -> Any:
        return self.of_value(self.more[key])

    def laid_out(self, e: Edge, spec: Spec) -> None:
        """Lays out a batch in memory that begins at 0."""
        if ("rows", e) not in self.more:
            self.more["rows", e], self.more["about", e] = self._laid_out(spec)

    def renamed(self, key: Any, spec: Spec, begins: Any) -> None:
        """The rows of an edge that is seen in the memory of others."""
        if key not in self.more:
            self.more[key], _ = self._laid_out(spec)
            self.of(key)["data"][...] = begins

    def _laid_out(self, spec: Spec) -> tuple[Value, Value]:
        rows, about = self.store(np.zeros(spec.n, TENSOR), RESULT), self.store(np.zeros(2, _INT64), RESULT)
        numbers = spec.n, spec.ndim, int(from_numpy(spec.dtype))
        frames = () if self._sample_of is None else (self._sample_of,)
        name = "lay_out_frames" if frames else "lay_out_batch"
        if not self.call(name, spec.stored, *numbers, *(frames or (0,)), Pointer(rows.value), Pointer(about.value)):
            raise MemoryError(f"no memory is large enough for samples of the shapes {spec.stored.tolist()[:4]}...")
        return rows.value, about.value


class ComputedPlan(GpuPlan):
    """A plan whose image and sizes are computed anew for each batch. Started by one batch at a time."""

    abouts: list[tuple[Spec, np.ndarray]]  # of the batches given out
    inner: list[np.ndarray]  # the same of inner tensors
    scratch: list[np.ndarray]  # bytes in front of them that launches need

    def _seen(self, output: Output) -> Spec:
        return output.spec.copy()

    def _image(self, image: Image) -> tuple[Any, Any, list[Any]]:
        return image.shared()

    def _placed(self) -> tuple[int, list[int], list[Spec], list[int]]:
        scratch = max((int(x[0]) for x in self.scratch), default=0)
        end, inner = max(self._block, self._at_workspace + -(-scratch // _ALIGNED) * _ALIGNED), []
        for about in self.inner:
            inner.append(end)
            end += -(-int(about[0]) // _ALIGNED) * _ALIGNED
        sizes, specs = [], []
        for spec, about in self.abouts:
            nbytes, dense = about.tolist()
            sizes.append(nbytes)
            specs.append(copy := spec.copy())
            copy._dense = bool(dense)
        return end, sizes, specs, inner


class TracedSegment(GpuSegment):
    """A segment while its rules are traced."""

    trace: GpuPlanTrace

    def traced(self) -> TracedPlan:
        trace, specs, wiring = self.trace, self.specs, self._narrowed()
        calls, columns = [], []
        for c, kernel, of_call in self._kernels():
            calls.append(self._call(c, kernel, trace.fill_rows(kernel, self.n_rows, of_call, kernel.path)))
            columns.append(of_call)
        edges = list(self._numbers)
        launches: list[Launch] = []
        if calls:
            at_hand = [trace.at_hand(s) for s in self._tensors]
            fusion = self._fusion(wiring, calls)
            launches = fusion.plan(calls, at_hand, self.n_rows)
            scratch = expect(trace, fusion, calls, columns, at_hand, self._tensors)
            trace.more["scratch"] = [trace.settled(x.reshape(1)) for x in scratch]
            trace.more["chosen"] = chosen(calls, launches)
        for e in (*wiring.allocated, *(edges[t] for x in launches for t in x.tensors)):
            root = wiring.root.get(e, e)
            if root not in self.imported:
                trace.laid_out(root, specs[root])
            if root != e:
                whole = trace.of(("rows", root)) if root not in self.imported else trace.of_value(trace.rows[root])
                trace.renamed(("seen", e), specs[e], whole["data"])
        for e in (edges[t] for x in launches for t in x.shapes):
            trace.described(e, specs[e])
        for e in (e for c in self.calls for e in c.outs if e in wiring.wanted and wiring.root[e] != e):
            root = wiring.root[e]
            trace.renamed(("view", e), specs[e], 0 if root in self.imported else trace.of(("rows", root))["data"])
        return trace.traced(specs)


class BoundSegment(GpuSegment):
    """Makes the plan of n samples from the memory of a program, once it has run for a batch."""

    def __init__(self, chain: Chain, ctx: Context, bound: BoundPlan):
        super().__init__(chain, ctx, chain.links[0])
        self._bound, self._more = bound, bound.plan.more
        self.calls = [_Call(link, None) for link in chain.links]
        self.specs = {e: bound.spec(e) for e in bound.plan.specs}
        self.imported = {e: ctx.values[e] for e in bound.plan.rows}
        self._abouts: list[tuple[Spec, np.ndarray]] = []
        self._inner: list[np.ndarray] = []

    def _narrowed(self) -> Wiring:
        return self.chain.wiring(self.chain.nodes)

    def _kernels(self) -> Iterator[tuple[_Call, kernels.Kernel, dict[str, Any]]]:
        called = [c for c in self.calls if not c.node.op.aliases]
        yield from zip(called, self._bound.plan.kernels, self._bound.plan.constant_fields)

    def _arguments(
        self, kernel: kernels.Kernel, columns: dict[str, Any], image: Image, k: int
    ) -> tuple[np.ndarray, int]:
        rows = self._bound.arguments[k]
        pointers = {field: self._bound.array(columns[field]) for field in kernel.pointers & columns.keys()}
        return rows.array, self._put(rows, pointers, self._more.get(("unread", k), {}), image)

    def _chosen(self, wiring: Wiring, calls: list[Call]) -> list[Launch]:
        launches = super()._chosen(wiring, calls)
        if chosen(calls, launches) != self._more["chosen"]:
            raise OddBatch("a plan for this batch is not good for others that the program plans")
        return launches

    def _memory(self, *key: Any) -> np.ndarray:
        return self._bound.array(self._more[key])

    def _make(self, *arguments: Any) -> GpuPlan:
        kind = type("Computed", (ComputedPlan,), {"n_inner": len(self._inner)})
        plan = kind(*arguments)
        plan.abouts, plan.inner = self._abouts, self._inner
        plan.scratch = [self._bound.array(x) for x in self._more.get("scratch", ())]
        return plan

    def _outputs(self, wiring: Wiring) -> list[tuple[Output, np.ndarray]]:
        named, made = origins(self.calls, self.imported, self.ctx.values), []
        for k, e in enumerate(wiring.allocated):
            rows, about = self._memory("rows", e), self._memory("about", e)
            self._abouts.append((self.specs[e], about))
            where = Where(MEMORY, OUTPUTS + k)
            output = Output(e, self.specs[e], rows, int(about[0]), where, None, named.get(e), e in wiring.wanted)
            made.append((output, rows))
        return made

    def _views(self, wiring: Wiring, made: dict[Edge, Output]) -> list[Output]:
        """Whose rows follow from the batch, too."""
        named, views = origins(self.calls, self.imported, self.ctx.values), []
        for e in (e for c in self.calls for e in c.outs if e in wiring.wanted and wiring.root[e] != e):
            root = wiring.root[e]
            within = Where(INPUT, self._inputs.index(root)) if root not in made else made[root].where
            views.append(Output(e, self.specs[e], self._memory("view", e), 0, within, root, named.get(e), True))
        return views

    def _place(
        self, wiring: Wiring, launches: list[Launch], begin: int, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> int:
        edges, first = list(self._numbers), OUTPUTS + len(wiring.allocated)
        for x in launches:
            for t in x.tensors:
                root = wiring.root.get(edges[t], edges[t])
                if root not in places and root not in self.imported:
                    places[root] = Where(MEMORY, first + len(self._inner)), self._memory("rows", root)
                    self._inner.append(self._memory("about", root))
        return begin

    def _rows_of(
        self, e: Edge, wiring: Wiring, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> tuple[np.ndarray, Where]:
        root = wiring.root.get(e, e)
        where, rows = places[root] if root in places else (HERE, self._bound.array(self._bound.plan.rows[root]))
        return rows if root == e else self._memory("seen", e), where

    def _shapes_of(self, e: Edge) -> np.ndarray:
        return self._bound.shapes[e].array if e in self._bound.shapes else self.specs[e].packed()


class GpuCompiledPlan(Planned):
    """A chain that is planned by a program, for batches of n samples."""

    def __init__(self, chain: Chain, plan: TracedPlan):
        self._chain, self._bound = chain, BoundPlan(plan)
        self._made: GpuPlan | None = None

    def plan(self, ctx: Context) -> bool:
        self._begin = time.monotonic_ns()
        if not self._bound.run(ctx):
            return False
        if self._made is None or self._made.session is not ctx.gpu.session:
            try:
                self._made = BoundSegment(self._chain, ctx, self._bound).plan()
            except (KeyError, ValueError):  # it needs other launches; the rules run, and say if something is wrong
                return False
        return True

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        assert self._made is not None
        self._made.run(ctx, self._begin)


class GpuChainPlans(ChainPlans):
    """The plans of a chain on the GPU."""

    def _trace(self, ctx: Context) -> TracedPlan:
        return self._segment(TracedSegment(self.chain, ctx, self.chain.links[0], GpuPlanTrace())).traced()

    def _bound(self, plan: TracedPlan, ctx: Context) -> Any:
        return GpuCompiledPlan(self.chain, plan)
