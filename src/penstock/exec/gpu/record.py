# SPDX-License-Identifier: Apache-2.0
"""Plans of GPU segments that are computed for each batch by what was recorded of an earlier one, as those of chains of
the CPU are (exec/cpu/replay.py): for pictures whose sizes never come again. The image of the plan is the memory of the
record; places and sizes follow from the extents that it computes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Spec
from ...core.columns import constant, plain
from ...core.dtypes import from_numpy
from ...core.op import Arguments
from ...core.rng import Watched
from ...core.rows import TENSOR, ArgumentRows, TensorRows
from ...gpu.decided import expect
from ...gpu.launch import Call, Fusion, Launch
from ..context import Context
from ..cpu.chain import Chain, Link
from ..cpu.replay import Record, Recorded, Replays
from ..cpu.wiring import Edge, Wiring
from .chain import GpuSegment
from .plan import HERE, INPUT, MEMORY, OUTPUTS, GpuPlan, Image, Output, Where

_ALIGNED = 256
_ANOTHER_AFTER = (4, 16, 64)  # batches that found all records of their kind in use
_PAUSE, _LOOKS = 50e-6, 100  # seconds between looks for one that is given back, and how many
_INT64 = np.dtype("i8")


class GpuRecord(Record):
    """What is recorded of a segment on the GPU. `odd`: the fault is in the batch, another one may be without."""

    odd = False

    def unread(self, to: np.ndarray, name: str) -> None:
        """The image is patched with them."""

    def laid_out(self, spec: Spec) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a batch in memory that begins at 0, and (2,): its bytes, and whether all have one shape."""
        rows, at = self.memory(spec.n, TENSOR)
        about, at_about = self.memory(2, _INT64)
        dtype = int(from_numpy(spec.dtype))
        if not self.call("lay_out_batch", spec.stored, spec.n, spec.ndim, dtype, 0, at, at_about):
            raise MemoryError(f"no memory is large enough for samples of the shapes {spec.stored.tolist()[:4]}...")
        return rows, about


def _plain(spec: Spec) -> Spec:
    """The same memory, for code that is not on record."""
    if spec.stored is spec.shape:
        return Spec(plain(spec.shape), spec.dtype, spec.layout)
    return Spec(*map(plain, (spec.shape, spec.dtype, spec.layout, spec.origin, spec.stored)))


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


class RecordedSegment(GpuSegment):
    """A segment that is planned while all is recorded."""

    record: GpuRecord

    def __init__(self, chain: Chain, ctx: Context, first: Link, record: GpuRecord):
        super().__init__(chain, ctx, first, set())
        self.record, self.native = record, record
        self._abouts: list[tuple[Spec, np.ndarray]] = []
        self._inner: list[np.ndarray] = []
        self._columns: list[dict[str, Any]] = []

    def watch(self, link: Link, a: Arguments) -> None:
        a.random = Watched(a.random)  # whose numbers, if a rule reads them, are computed from data

    def _make(self, *arguments: Any) -> GpuPlan:
        kind = type("Computed", (ComputedPlan,), {"n_inner": len(self._inner)})
        plan = kind(*arguments)
        plan.abouts, plan.inner = self._abouts, self._inner
        for spec, _ in self._abouts:
            self.record.check(spec.stored, "the shape of an output")
            if not spec.stored.flags.c_contiguous:
                self.record.fault = self.record.fault or "the shape of an output is a view"
        return plan

    def _outputs(self, wiring: Wiring) -> list[tuple[Output, np.ndarray]]:
        named, made = self._named(), []
        for k, e in enumerate(wiring.allocated):
            spec = _plain(self.specs[e])
            rows, about = self.record.laid_out(spec)
            self._abouts.append((spec, about))
            where = Where(MEMORY, OUTPUTS + k)
            output = Output(e, spec, rows, int(about[0]), where, None, named.get(e), e in wiring.wanted)
            made.append((output, rows))
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
            views.append(Output(e, _plain(self.specs[e]), rows, 0, within, root, named.get(e), True))
            self.record.check(self.specs[e].stored, "the shape of an output")
        return views

    def _renamed(self, e: Edge, whole: np.ndarray | None) -> np.ndarray:
        """The rows of an edge that is seen in the memory of others, where they are; None: at their beginnings."""
        rows, _ = self.record.laid_out(_plain(self.specs[e]))
        begins = constant(np.zeros(len(rows), "u8")) if whole is None else self.record.column(whole["data"])
        self.record.assign(rows["data"], begins)
        return rows

    def _arguments(self, kernel: kernels.Kernel, rows: ArgumentRows, columns: dict[str, Any], image: Image) -> int:
        at = super()._arguments(kernel, rows, columns, image)
        self.record.filled([rows], [columns])
        self.record.adopt(rows.array)
        self._columns.append(columns)
        return at

    def _place(
        self, wiring: Wiring, launches: list[Launch], begin: int, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> int:
        edges, first = list(self._numbers), OUTPUTS + len(wiring.allocated)
        for x in launches:
            for t in x.tensors:
                root = wiring.root.get(edges[t], edges[t])
                if root not in places and root not in self.imported:
                    rows, about = self.record.laid_out(self.specs[root])
                    places[root] = Where(MEMORY, first + len(self._inner)), rows
                    self._inner.append(about)
        return begin

    def _tensor(self, e: Edge) -> int:
        number = super()._tensor(e)
        self._tensors[number] = _plain(self._tensors[number])  # launches are chosen for this batch
        return number

    def _rows_of(
        self, e: Edge, wiring: Wiring, places: dict[Edge, tuple[Where, np.ndarray]]
    ) -> tuple[np.ndarray, Where]:
        root = wiring.root.get(e, e)
        where, rows = places[root] if root in places else (HERE, self.imported[root].rows)
        return rows if root == e else self._renamed(e, rows), where

    def _shapes_of(self, spec: Spec) -> np.ndarray:
        rows = TensorRows(spec.n).describe(spec.stored, spec.dtype)
        self.record.assign(rows.shape[:, : spec.ndim], spec.stored)
        return rows.array

    def _planned(self, fusion: Fusion, calls: list[Call]) -> list[Launch]:
        launches = super()._planned(fusion, calls)
        why, self.record.odd = expect(self.record, fusion, calls, self._columns, self._tensors)
        self.record.fault = self.record.fault or why
        return launches


class GpuReplay:
    """A plan of a whole chain that a record computes."""

    def __init__(self, kind: tuple, record: Record, plan: GpuPlan):
        self.kind, self.made = kind, plan
        self._recorded = Recorded(record)

    def plan(self, ctx: Context) -> bool:
        """Says whether the record is of use for a batch, whose plan is then in place."""
        return self.made.session is ctx.gpu.session and self._recorded.replayed(ctx)


class GpuReplays(Replays):
    """The records of a chain on the GPU."""

    def __init__(self, chain: Chain):
        super().__init__(chain)
        self._waited: dict[tuple, int] = {}

    def start(self, ctx: Context, begin: int) -> bool:
        """Starts a batch by a record, or while it is recorded; False if neither can be."""
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
        with self._kinds.recording(kind):
            return self._recorded(kind, ctx, begin)

    def _given_back(self, kind: tuple) -> Any:
        """A batch is started in a small part of the time that recording another one takes. If records are often all
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

    def _recorded(self, kind: tuple, ctx: Context, begin: int) -> bool:
        record, links = GpuRecord(), self.chain.links
        try:
            segment = RecordedSegment(self.chain, ctx, links[0], record)
            if segment.counts is not None or not all(segment.add(link) for link in links):
                self._kinds.give_up(kind)
                return False
            plan = segment.plan()
        except Exception:  # which comes again if it is not about the record
            return False
        plan.run(ctx, begin)
        if record.fault:
            if record.odd:
                self._kinds.used(kind, False)
            else:
                self._kinds.give_up(kind)
            return True
        self._idle.setdefault(kind, []).append(GpuReplay(kind, record, plan))  # type: ignore[arg-type]
        return True
