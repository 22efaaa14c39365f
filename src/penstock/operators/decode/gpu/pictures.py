# SPDX-License-Identifier: Apache-2.0
"""The plan of a batch for a mixed decoder: by the operator's Python code, or by a recorded program (see
core/plan_cache.py)."""

from __future__ import annotations

import ctypes

import numpy as np

from ....core import dtypes, kernels
from ....core.batch import Batch, Spec
from ....core.plan_cache import PlanCache
from ....core.plan_memory import BatchContext, PlanMemory
from ....core.rows import TENSOR, address, allocate
from ....gpu.batch import DeviceBatch
from ....gpu.session import GpuPass
from ....gpu.stage import StageBatch, StageCall

_BYTE, _INT64 = np.dtype("u1"), np.dtype("i8")
# Results of `plan_pictures`: indices of the fields of `PictureTotals`, and bits of `engines`.
_OUT_BYTES, _DENSE, _SAME, _BY_KERNELS, _BY_HARDWARE, _FILE_BYTES, _N_TOTALS = range(7)
_KERNELS, _HARDWARE = 1, 2
_KERNEL, _OUT = "decode/decode", (-1, 0)


class Pictures:
    """n pictures in the arrays `at`: rows of `DecodeArgs`, the outputs' extents `shape` (n, 3), and the engines that
    support them. Reused between batches, by one batch at a time."""

    def __init__(self, call: StageCall, n: int, at: PlanMemory):
        self.call, self.n = call, n
        (self.kernel,), (rows,), (info,) = at.kernels, at.arguments, at.more["info"]
        self.args, self.at_args = rows.array, rows.address
        spec = at.specs[_OUT]
        self.shape, self.info = np.ascontiguousarray(spec.stored), np.ascontiguousarray(info)
        self._at_shape, self._at_info = address(self.shape), address(self.info)
        self._kind = spec.dtype, spec.layout, int(dtypes.from_numpy(spec.dtype))
        self._before, self._at_before = allocate((n, 3), _INT64)
        self._before[...] = -1
        self._engines, self._at_engines = allocate(n, _BYTE)
        self._totals = (ctypes.c_int64 * _N_TOTALS)()
        self._at_totals = ctypes.addressof(self._totals)
        self._spec: Spec | None = None

    def allocate(self, gpu: GpuPass, encoded: Batch, hardware: bool) -> DeviceBatch:
        """Allocates the output; sets the properties below. `hardware`: whether the JPEG engine supports this type of
        pixels."""
        native, n, totals, (dtype, layout, number) = kernels.library(), self.n, self._totals, self._kind
        rows, at = allocate(n, TENSOR)
        if not native.plan_pictures(
            *(encoded.rows_address, n, self.at_args, self._at_info, self._at_shape, number, hardware),
            *(self._at_before, at, self._at_engines, self._at_totals),
        ):
            return gpu.allocate(Spec(self.shape.copy(), dtype, layout))  # raises the error
        block = gpu.take(totals[_OUT_BYTES])
        native.move_batch(at, n, block.address)
        spec = self._spec
        if spec is None or not totals[_SAME]:
            spec = self._spec = Spec(self.shape.copy(), dtype, layout)
            spec._dense = bool(totals[_DENSE])
        return DeviceBatch.at(gpu.stream, spec, rows, block, at)

    @property
    def file_bytes(self) -> int:
        """Total size of the files in bytes."""
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
        """Pictures (n,) for the GPU's kernels: JPEG at full size with the exact DCT. The kernels may still refuse
        them."""
        return self._engines & _KERNELS != 0

    def fit_hardware(self) -> np.ndarray:
        """Pictures (n,) that the JPEG engine supports: whole, without rotation, 8 bits, RGB or BGR."""
        return self._engines & _HARDWARE != 0


class Planner:
    """Plans the batches of one decoder."""

    def __init__(self, call: StageCall):
        self.call = call
        self.plans = PlanCache(self, call.op.traced and not call.data_arguments and len(call.inputs) == 1)

    def plan(self, batch: StageBatch) -> PlanMemory:
        """Raises errors of the samples. The plan's `made` is a Pictures; call `plans.done` after decoding."""
        spec = batch.inputs[0].spec
        return self.plans.plan((spec.ndim, spec.dtype, spec.layout), batch.context)

    def fill(self, to: PlanMemory, rows: BatchContext) -> None:
        """Fills the plan by the operator's Python code."""
        op, a = self.call.op, self.call.arguments(rows)
        a.native = to.native
        inputs = [to.take_in(e, rows.values[e]) for e in self.call.inputs]
        a.batches = [b if i in op.peeks else None for i, b in enumerate(inputs)]
        specs = [b.spec for b in inputs]
        op.plan(a, *specs)
        spec = op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        to.specs = {_OUT: spec}
        to.fill_rows(kernels.kernel(_KERNEL), spec.n, op.params(a, *specs, spec), op.display_name())
        to.more["info"] = [a.info]

    def plan_of(self, ctx: BatchContext, at: PlanMemory) -> Pictures:
        return Pictures(self.call, ctx.n, at)
