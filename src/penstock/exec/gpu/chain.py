# SPDX-License-Identifier: Apache-2.0
"""Runs a chain on the GPU: planned like a CPU chain, then grouped into as few launches as possible, whose arguments are
copied to the GPU at once. Nothing waits for the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import kernels
from ...core.plan_memory import PlanMemory
from ...core.traced import is_constant
from ...gpu.batch import DeviceBatch
from ...gpu.driver import OutOfDeviceMemory
from ...gpu.launch import Call, Fusion
from ...graph.node import Edge
from ..arguments import Resolver
from ..context import Context, explain_failure
from ..cpu.chain import Chain
from ..cpu.segment import Segment
from .plan import GpuPlan

_NAMED = 3  # operators named in an out-of-memory error


class GpuChain(Chain):
    """A chain whose nodes run on the GPU."""

    made_of = DeviceBatch

    def __init__(self, nodes: list[Any], needed: set[Edge], resolvers: dict[int, Resolver]):
        super().__init__(nodes, needed, resolvers)
        self._reads = [[e for i, e in enumerate(c.ins) if i not in c.op.ahead(len(c.ins))] for c in self.called]
        self._kept = {*self.wiring.allocated, *(root for e, root in self.wiring.root.items() if root != e)}
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

    def lay_out(self, segment: Segment, called: list[tuple[kernels.Kernel, Any]]) -> None:
        wiring, to = self.wiring, segment.to
        calls = [Call(kernel.path, c.outs, ins, x) for (kernel, x), c, ins in zip(called, self.called, self._reads)]
        key = tuple(c.kernel for c in calls)
        if key not in self._fusions:
            self._fusions[key] = Fusion(calls, self._kept)
        launches = to.launches = self._fusions[key].plan(calls, segment.specs, segment.ctx.n)
        scratch = {id(x.scratch): x.scratch for x in launches}.values()
        to.more["scratch"] = [np.reshape(x, 1) for x in scratch if not is_constant(x) or x]
        framed = [] if segment.ctx.sample_of is None else wiring.returned  # to check their shapes
        for e in (*wiring.allocated, *framed, *(e for x in launches for e in (*x.tensors, *x.shapes))):
            root = wiring.root.get(e, e)
            segment.lay_out(root)
            if e not in to.rows:
                segment.lay_out(e)
                to.rows[e]["data"][...] = to.rows[root]["data"]

    def plan_of(self, ctx: Context, at: PlanMemory) -> GpuPlan:
        return GpuPlan(self, ctx, at)


def _size(nbytes: int) -> str:
    return f"{nbytes / (1 << 20):.1f} MiB" if nbytes < 100 << 20 else f"{nbytes >> 20} MiB"
