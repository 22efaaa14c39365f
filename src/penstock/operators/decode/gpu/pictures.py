# SPDX-License-Identifier: Apache-2.0
"""The plan of a batch for a mixed decoder: by its operator's rules, or, where these need not run for every
batch, by a program (see exec/cpu/plan_cache.py)."""

from __future__ import annotations

import ctypes
from contextlib import closing
from typing import Any

import numpy as np

from ....core import dtypes, kernels
from ....core.batch import Batch, Spec
from ....core.op import Arguments
from ....core.rows import TENSOR, ArgumentRows, address, allocate
from ....exec.context import Context
from ....exec.cpu.plan_cache import PlanCache, Planned, rules_only
from ....exec.cpu.plan_memory import BoundPlan
from ....exec.cpu.plan_trace import PlanTrace, TracedBatch, TracedPlan
from ....gpu.batch import DeviceBatch
from ....gpu.session import GpuPass
from ....gpu.stage import StageBatch, StageCall

_BYTE, _INT64 = np.dtype("u1"), np.dtype("i8")
# What `plan_pictures` tells: the fields of `PictureTotals`, and bits of `engines`.
_OUT_BYTES, _DENSE, _SAME, _BY_KERNELS, _BY_HARDWARE, _FILE_BYTES, _N_TOTALS = range(7)
_KERNELS, _HARDWARE = 1, 2
_KERNEL, _OUT = "decode/decode", (-1, 0)
_KEPT_SIZES, _KEPT_EACH = 64, 4


class Pictures(Planned):
    """n pictures: rows of `DecodeArgs`, the extents `shape` (n, 3) of the outputs, and who can decode them. Kept from
    batch to batch, used by one at a time."""

    def __init__(self, call: StageCall, n: int):
        self.call, self.n = call, n
        self.kernel = kernels.kernel(_KERNEL)
        self._bound: BoundPlan | None = None
        self._rows = ArgumentRows(n, self.kernel.args, self.kernel.pointers)
        self._before, self._at_before = allocate((n, 3), _INT64)
        self._before[...] = -1
        self._engines, self._at_engines = allocate(n, _BYTE)
        self._totals = (ctypes.c_int64 * _N_TOTALS)()
        self._at_totals = ctypes.addressof(self._totals)
        self._spec: Spec | None = None

    @classmethod
    def by_program(cls, call: StageCall, plan: TracedPlan, n: int) -> Pictures:
        """Those that a program plans."""
        made = cls(call, n)
        made._bound = bound = BoundPlan(plan)
        (made._rows,) = bound.at.arguments
        made._settle(bound.at.specs[_OUT], *bound.at.more["info"])
        return made

    @property
    def is_by_program(self) -> bool:
        return self._bound is not None

    def plan(self, ctx: Context) -> bool:
        assert self._bound is not None
        return self._bound.run(ctx)

    def by_rules(self, batch: StageBatch) -> None:
        """Plans a batch."""
        a = batch.arguments()
        spec, columns = planned(self.call, a, batch.inputs)
        self._rows.fill(columns)
        self._settle(spec, a.info)

    def _settle(self, spec: Spec, info: np.ndarray) -> None:
        self.args, self.at_args = self._rows.array, self._rows.address
        self.shape, self.info = np.ascontiguousarray(spec.stored), np.ascontiguousarray(info)
        self._at_shape, self._at_info = address(self.shape), address(self.info)
        self._kind = spec.dtype, spec.layout, int(dtypes.from_numpy(spec.dtype))

    def allocate(self, gpu: GpuPass, encoded: Batch, hardware: bool) -> DeviceBatch:
        """Memory for the pixels; then the numbers below are known. `hardware` says whether the JPEG engine can make
        pixels of this kind at all."""
        native, n, totals, (dtype, layout, number) = kernels.library(), self.n, self._totals, self._kind
        rows, at = allocate(n, TENSOR)
        if not native.plan_pictures(
            *(encoded.rows_address, n, self.at_args, self._at_info, self._at_shape, number, hardware),
            *(self._at_before, at, self._at_engines, self._at_totals),
        ):
            return gpu.allocate(Spec(self.shape.copy(), dtype, layout))  # says what the matter is
        block = gpu.take(totals[_OUT_BYTES])
        native.move_batch(at, n, block.address)
        spec = self._spec
        if spec is None or not totals[_SAME]:
            spec = self._spec = Spec(self.shape.copy(), dtype, layout)
            spec._dense = bool(totals[_DENSE])
        return DeviceBatch.at(gpu.stream, spec, rows, block, at)

    @property
    def file_bytes(self) -> int:
        """Of all pictures together."""
        return self._totals[_FILE_BYTES]

    @property
    def all_fit_kernels(self) -> bool:
        return self._totals[_BY_KERNELS] == self.n

    @property
    def all_fit_hardware(self) -> bool:
        return self._totals[_BY_HARDWARE] == self.n

    @property
    def any_fits_hardware(self) -> bool:
        return self._totals[_BY_HARDWARE] > 0

    def fit_kernels(self) -> np.ndarray:
        """Which (n,) the GPU's kernels can be tried with: JPEG at full size and the exact DCT."""
        return self._engines & _KERNELS != 0

    def fit_hardware(self) -> np.ndarray:
        """Which (n,) the JPEG engine decodes as they are wanted: whole, upright, 8 bits, RGB or BGR."""
        return self._engines & _HARDWARE != 0


def planned(call: StageCall, a: Arguments, inputs: list[Batch]) -> tuple[Spec, dict[str, Any]]:
    """What the rules make of the inputs: the pictures, and the columns of `DecodeArgs`."""
    op, specs = call.op, [b.spec for b in inputs]
    a.batches = [b if i in op.peeks else None for i, b in enumerate(inputs)]
    op.plan(a, *specs)
    spec = op.outputs(a, *specs)
    assert isinstance(spec, Spec)
    return spec, op.params(a, *specs, spec)


class Planner(PlanCache[Pictures]):
    """Plans the batches of one decoder."""

    def __init__(self, call: StageCall):
        super().__init__(call.inputs)
        self.call = call
        self._can_be_traced = call.op.traced and not call.data_arguments and len(call.inputs) == 1 and not rules_only()
        self._by_rules: dict[int, list[Pictures]] = {}  # by the number of pictures

    def pictures(self, batch: StageBatch) -> Pictures:
        """Raises what is wrong with the samples. Give it back when the batch has run."""
        if self._can_be_traced:
            spec = batch.inputs[0].spec
            pictures = self.take((spec.ndim, spec.dtype, spec.layout), batch.context)
            if pictures is not None:
                return pictures
        try:
            pictures = self._by_rules[batch.n].pop()
        except LookupError:
            pictures = Pictures(self.call, batch.n)
        pictures.by_rules(batch)
        return pictures

    def give_back(self, pictures: Pictures) -> None:
        if pictures.is_by_program:
            super().give_back(pictures)
        elif len(self._by_rules) < _KEPT_SIZES or pictures.n in self._by_rules:
            idle = self._by_rules.setdefault(pictures.n, [])
            if len(idle) < _KEPT_EACH:
                idle.append(pictures)

    def _trace(self, ctx: Context) -> TracedPlan:
        a = self.call.arguments(ctx)
        with closing(PlanTrace()) as trace:
            a.native = trace
            batches = [(e, ctx.values[e]) for e in self.call.inputs]
            spec, columns = planned(self.call, a, [TracedBatch(trace, e, b, trace.take_in(e, b)) for e, b in batches])
            trace.fill_rows(kernels.kernel(_KERNEL), ctx.n, columns, self.call.op.display_name())
            trace.more["info"] = [a.info]
            return trace.traced({_OUT: spec})

    def _bound(self, plan: TracedPlan, ctx: Context) -> Pictures:
        return Pictures.by_program(self.call, plan, ctx.n)
