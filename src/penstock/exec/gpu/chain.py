# SPDX-License-Identifier: Apache-2.0
"""Runs a chain on the GPU: planned like a CPU chain, then grouped into as few launches as possible, whose arguments are
copied to the GPU at once. Nothing waits for the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Spec
from ...core.dtypes import from_numpy
from ...core.plan_memory import PlanMemory
from ...core.rows import TENSOR
from ...core.traced import plain
from ...gpu.driver import OutOfDeviceMemory
from ...gpu.launch import Call, Fusion, Launch
from ...graph.node import Edge
from ..arguments import Resolver
from ..context import Context, explain_failure
from ..cpu.chain import Chain
from ..cpu.segment import Segment
from ..frames import check_frames
from .plan import GpuPlan

_NAMED = 3  # operators named in an out-of-memory error
_INT64 = np.dtype("i8")


class GpuChain(Chain):
    """A chain whose nodes run on the GPU."""

    def __init__(self, nodes: list[Any], needed: set[Edge], resolvers: dict[int, Resolver]):
        super().__init__(nodes, needed, resolvers)
        self._called = [link for link in self.links if not link.op.aliases]
        self._reads = [[e for i, e in enumerate(c.ins) if i not in c.op.ahead(len(c.ins))] for c in self._called]
        self._kept = {*self.wiring.allocated, *(root for e, root in self.wiring.root.items() if root != e)}
        self.seen = [e for c in self.links for e in c.outs if e in self.wiring.wanted and self.wiring.root[e] != e]
        self._fusions: dict[tuple[str, ...], Fusion] = {}  # how calls are fused into launches, by kernels

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        try:
            super().run(ctx, pool)
        except OutOfDeviceMemory as e:
            raise self._explained(ctx, e) from None

    def _explained(self, ctx: Context, error: OutOfDeviceMemory) -> Exception:
        """Lists how much memory each operator requested, largest first."""
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

    def kind(self, rows: Context) -> tuple | None:
        kind = super().kind(rows)
        return None if kind is None else (*kind, rows.gpu.session.device.id)  # kernels are loaded per device

    def lay_out(self, segment: Segment) -> None:
        wiring, specs, to = self.wiring, segment.specs, segment.to
        frames = to.sample_of(segment.ctx)
        launches = to.launches = self._launches(segment.fill_rows(), specs, segment.ctx.n)
        to.more["scratch"] = [x.reshape(1) for x in {id(x): x for of in launches for x in of.more_scratch}.values()]
        for e in (*wiring.allocated, *(e for x in launches for e in x.tensors)):
            root = wiring.root.get(e, e)
            try:
                if root not in to.rows:
                    to.rows[root], to.about[root] = _lay_out(to.native, specs[root], frames)
                if e not in to.rows:
                    to.rows[e] = _seen_rows(to.native, specs[e], to.rows[root]["data"], frames)
            except (MemoryError, ValueError) as error:
                raise explain_failure(segment.ctx, next(n for n in self.nodes if n.number == e[0]), error) from None
        for e in (e for x in launches for e in x.shapes):
            to.described(e, specs[e])
        for e in self.seen:
            root = wiring.root[e]
            begins = to.rows[root]["data"] if root in wiring.root else 0
            to.views[e] = _seen_rows(to.native, specs[e], begins, frames)

    def _launches(self, called: list[tuple[kernels.Kernel, Any]], specs: Any, n: int) -> list[Launch]:
        """The launches of kernels with their argument rows. If rows are traced, the program checks the values that
        decide the fusion."""
        if not called:
            return []
        calls = [Call(kernel.path, c.outs, ins, x) for (kernel, x), c, ins in zip(called, self._called, self._reads)]
        key = tuple(c.kernel for c in calls)
        if key not in self._fusions:
            self._fusions[key] = Fusion(calls, self._kept)
        return self._fusions[key].plan(calls, specs, n)

    def plan_of(self, ctx: Context, at: PlanMemory) -> GpuPlan:
        return GpuPlan(self, ctx, at)


def _size(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.1f} MiB" if nbytes < 100 << 20 else f"{nbytes >> 20} MiB"


def _lay_out(to: Any, spec: Spec, frames: Any) -> tuple[Any, Any]:
    """Returns a batch's rows, for memory that begins at address 0, and its `about` (PlanMemory), computed now or
    recorded in a program. `frames`: the sample of each row if rows are frames."""
    rows, at_rows = to.allocate(spec.n, TENSOR)
    about, at_about = to.allocate(2, _INT64)
    numbers = spec.n, spec.ndim, int(from_numpy(spec.dtype))
    name, of = ("lay_out_batch", 0) if frames is None else ("lay_out_frames", frames)
    if not to.call(name, spec.stored, *numbers, of, at_rows, at_about):
        if frames is not None:
            check_frames(plain(spec.stored), plain(frames))
        raise MemoryError(f"no memory is large enough for samples of the shapes {spec.stored.tolist()[:4]}...")
    return rows, about


def _seen_rows(to: Any, spec: Spec, begins: Any, frames: Any) -> Any:
    """The rows of a batch whose samples alias those of another batch, which begin at `begins`."""
    rows, _ = _lay_out(to, spec, frames)
    rows["data"][...] = begins
    return rows
