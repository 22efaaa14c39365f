# SPDX-License-Identifier: Apache-2.0
"""Plans of GPU segments that a program computes for each batch, as those of chains of the CPU (exec/cpu/plan_cache.py):
for pictures whose sizes never come again. The image of the plan is memory of the program; places and sizes follow from
the extents that it computes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Spec
from ...core.dtypes import from_numpy
from ...core.op import Arguments
from ...core.program import RESULT, Pointer, Program
from ...core.rng import Watched
from ...core.rows import TENSOR, ArgumentRows, TensorRows
from ...core.traced import Untraceable, is_constant
from ...gpu.decided import expect
from ...gpu.launch import Call, Fusion, Launch
from ..context import Context
from ..cpu.chain import Chain, Link
from ..cpu.plan_cache import PlanCache
from ..cpu.plan_trace import PlanProgram, PlanTrace
from ..cpu.wiring import Edge, Wiring
from .chain import GpuSegment
from .plan import HERE, INPUT, MEMORY, OUTPUTS, GpuPlan, Image, Output, Where

_ALIGNED = 256
_ANOTHER_AFTER = (4, 16, 64)  # batches that found all plans of their kind in use
_PAUSE, _LOOKS = 50e-6, 100  # seconds between looks for one that is given back, and how many
_INT64 = np.dtype("i8")


class GpuPlanTrace(PlanTrace):
    """The program of a segment on the GPU. `odd`: this batch can't be traced, another one perhaps can."""

    odd = False

    def unread(self, to: np.ndarray, numbers: Any) -> None:
        """The image is patched with them."""

    def laid_out(self, spec: Spec) -> tuple[Any, np.ndarray]:
        """The rows of a batch in memory that begins at 0, and (2,): its bytes, and whether all have one shape."""
        rows, about = self.store(np.zeros(spec.n, TENSOR), RESULT), self.store(np.zeros(2, _INT64), RESULT)
        numbers = spec.n, spec.ndim, int(from_numpy(spec.dtype)), 0
        if not self.call("lay_out_batch", spec.stored, *numbers, Pointer(rows.value), Pointer(about.value)):
            raise MemoryError(f"no memory is large enough for samples of the shapes {spec.stored.tolist()[:4]}...")
        return rows, about.array


class ComputedPlan(GpuPlan):
    """A plan whose image and sizes are computed anew for each batch. Started by one batch at a time."""

    abouts: list[tuple[Spec, np.ndarray]]  # of the batches given out
    inner: list[np.ndarray]  # the same of inner tensors

    def _seen(self, output: Output) -> Spec:
        return output.spec.copy()

    def _image(self, image: Image) -> tuple[Any, Any, list[Any]]:
        return image.shared()

    def _placed(self) -> tuple[int, list[int], list[Spec], list[int]]:
        end, inner = self._block, []
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
    """A segment that is planned while its rules are traced."""

    trace: GpuPlanTrace

    def __init__(self, chain: Chain, ctx: Context, first: Link, trace: GpuPlanTrace):
        super().__init__(chain, ctx, first, set())
        self.trace, self.native = trace, trace
        self._abouts: list[tuple[Spec, np.ndarray]] = []
        self._inner: list[np.ndarray] = []
        self._columns: list[dict[str, Any]] = []
        self._traced: list[Spec] = []  # of which `_tensors` are those of the batch at hand

    def watch(self, link: Link, a: Arguments) -> None:
        a.random = Watched(a.random)  # whose numbers, if a rule reads them, are computed from data

    def _make(self, *arguments: Any) -> GpuPlan:
        kind = type("Computed", (ComputedPlan,), {"n_inner": len(self._inner)})
        plan = kind(*arguments)
        plan.abouts, plan.inner = self._abouts, self._inner
        return plan

    def _outputs(self, wiring: Wiring) -> list[tuple[Output, np.ndarray]]:
        named, made = self._named(), []
        for k, e in enumerate(wiring.allocated):
            rows, about = self.trace.laid_out(self.specs[e])
            spec = self.trace.settled(self.specs[e])
            self._abouts.append((spec, about))
            where = Where(MEMORY, OUTPUTS + k)
            output = Output(e, spec, rows.array, int(about[0]), where, None, named.get(e), e in wiring.wanted)
            made.append((output, rows.array))
        return made

    def _views(self, wiring: Wiring, made: dict[Edge, Output]) -> list[Output]:
        """Whose rows follow from the batch, too."""
        named, views = self._named(), []
        for e in (e for c in self.calls for e in c.outs):
            root = wiring.root[e]
            if e not in wiring.wanted or root == e:
                continue
            within = Where(INPUT, self._inputs.index(root)) if root not in made else made[root].where
            rows = self._renamed(e, made[root].rows if root in made else None)
            spec = self.trace.settled(self.specs[e])
            views.append(Output(e, spec, rows, 0, within, root, named.get(e), True))
        return views

    def _renamed(self, e: Edge, whole: np.ndarray | None) -> np.ndarray:
        """The rows of an edge that is seen in the memory of others, where they are; None: at their beginnings."""
        rows, _ = self.trace.laid_out(self.specs[e])
        begins = 0 if whole is None else self.trace.of_memory(whole)["data"]
        self.trace.assign(rows["data"], begins)
        return rows.array

    def _arguments(self, kernel: kernels.Kernel, rows: ArgumentRows, columns: dict[str, Any], image: Image) -> int:
        self._columns.append(columns)
        at_hand = columns.copy()
        self.trace.fill_rows([rows], [at_hand], [kernel.path])
        return super()._arguments(kernel, rows, at_hand, image)

    def _place(
        self, wiring: Wiring, launches: list[Launch], begin: int, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> int:
        edges, first = list(self._numbers), OUTPUTS + len(wiring.allocated)
        for x in launches:
            for t in x.tensors:
                root = wiring.root.get(edges[t], edges[t])
                if root not in places and root not in self.imported:
                    rows, about = self.trace.laid_out(self.specs[root])
                    places[root] = Where(MEMORY, first + len(self._inner)), rows.array
                    self._inner.append(about)
        return begin

    def _tensor(self, e: Edge) -> int:
        number = super()._tensor(e)
        if number == len(self._traced):
            self._traced.append(self._tensors[number])
            self._tensors[number] = self.trace.settled(self._tensors[number])  # launches are chosen for this batch
        return number

    def _rows_of(
        self, e: Edge, wiring: Wiring, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> tuple[np.ndarray, Where]:
        root = wiring.root.get(e, e)
        where, rows = places[root] if root in places else (HERE, self.imported[root].rows)
        return rows if root == e else self._renamed(e, rows), where

    def _shapes_of(self, spec: Spec) -> np.ndarray:
        rows = TensorRows(spec.n).describe(spec.stored, spec.dtype)
        (traced,) = (t for t, s in zip(self._traced, self._tensors) if s is spec)
        if not is_constant(traced.stored):
            self.trace.store(rows.array, RESULT)
            self.trace.assign(self.trace.of_memory(rows.shape[:, : spec.ndim]), traced.stored)
        return rows.array

    def _planned(self, fusion: Fusion, calls: list[Call]) -> list[Launch]:
        launches = super()._planned(fusion, calls)
        why, self.trace.odd = expect(self.trace, fusion, calls, self._columns, self._tensors, self._traced)
        if why:
            raise Untraceable(why)
        return launches


class GpuCompiledPlan:
    """A plan of a whole chain that a program computes."""

    def __init__(self, kind: tuple, trace: PlanTrace, plan: GpuPlan):
        self.kind, self.made = kind, plan
        self._program = PlanProgram(trace)

    @property
    def program(self) -> Program:
        return self._program.program

    def plan(self, ctx: Context) -> bool:
        """Says whether the trace is of use for a batch, whose plan is then in place."""
        return self.made.session is ctx.gpu.session and self._program.run(ctx)


class GpuPlanCache(PlanCache):
    """The plans of a chain on the GPU."""

    def __init__(self, chain: Chain):
        super().__init__(chain)
        self._waited: dict[tuple, int] = {}

    def start(self, ctx: Context, begin: int) -> bool:
        """Starts a batch by a program, or while it is traced; False if neither can be."""
        kind = self._kind(ctx)
        if kind is None:
            return False
        replay: Any = self._planned(kind, ctx)
        if replay is not None:
            replay.made.run(ctx, begin)
            self._idle[kind].append(replay)
            return True
        if not self._kinds.pays(kind):
            return False
        with self._kinds.tracing(kind):
            return self._traced(kind, ctx, begin)

    def _given_back(self, kind: tuple) -> Any:
        """A batch is started in a small part of the time that tracing another one takes. If plans are often all
        in use, it pays to have one more."""
        self._waited[kind] = waited = self._waited.get(kind, 0) + 1
        if waited in _ANOTHER_AFTER:
            return None
        for _ in range(_LOOKS):
            time.sleep(_PAUSE)
            try:
                return self._idle[kind].pop()
            except IndexError:
                continue
        return None

    def _traced(self, kind: tuple, ctx: Context, begin: int) -> bool:
        trace, links = GpuPlanTrace(), self.chain.links
        try:
            segment = TracedSegment(self.chain, ctx, links[0], trace)
            if segment.counts is not None or not all(segment.add(link) for link in links):
                self._kinds.give_up(kind)
                return False
            replay = GpuCompiledPlan(kind, trace, segment.plan())
        except Untraceable as e:
            if trace.odd:
                self._kinds.used(kind, False)
            else:
                self._refused(kind, e)
            return False
        except Exception:  # which comes again if it is not about the program
            return False
        replay.made.run(ctx, begin)
        self.programs[kind] = replay.program
        self._idle.setdefault(kind, []).append(replay)  # type: ignore[arg-type]
        return True
