# SPDX-License-Identifier: Apache-2.0
"""The plan of a batch for a mixed decoder: by its operator's rules, or, where these need not run for every
batch, by a program (see exec/cpu/plan_cache.py)."""

from __future__ import annotations

import ctypes

import numpy as np

from ....core import dtypes, kernels
from ....core.batch import Batch, Spec
from ....core.rows import TENSOR, ArgumentRows, address, allocate
from ....core.traced import Untraceable, plain
from ....exec.cpu.batch_kinds import Kinds, rules_only
from ....exec.cpu.plan_trace import PlanProgram, PlanTrace, TracedBatch
from ....gpu.batch import DeviceBatch
from ....gpu.session import GpuPass
from ....gpu.stage import StageBatch, StageCall

_BYTE, _INT64 = np.dtype("u1"), np.dtype("i8")
# What `plan_pictures` tells: the fields of `PictureTotals`, and bits of `engines`.
_OUT_BYTES, _DENSE, _SAME, _BY_KERNELS, _BY_HARDWARE, _FILE_BYTES, _N_TOTALS = range(7)
_KERNELS, _HARDWARE = 1, 2
_KEPT_ROWS = 16384  # plans are kept for so many rows in total, at most
_KEPT_EACH = 4


class Pictures:
    """n pictures: rows of `DecodeArgs`, the extents `shape` (n, 3) of the outputs, and who can decode them. Kept from
    batch to batch, used by one at a time."""

    def __init__(self, call: StageCall, n: int):
        self.call, self.n = call, n
        self.kernel = kernels.kernel("decode/decode")
        self._rows = ArgumentRows(n, self.kernel.args, self.kernel.pointers)
        self.args, self.at_args = self._rows.array, self._rows.address
        self._before, self._at_before = allocate((n, 3), _INT64)
        self._before[...] = -1
        self._engines, self._at_engines = allocate(n, _BYTE)
        self._totals = (ctypes.c_int64 * _N_TOTALS)()
        self._at_totals = ctypes.addressof(self._totals)
        self._spec: Spec | None = None
        self._program: PlanProgram | None = None
        self.kind: tuple | None = None  # of what was traced

    def by_rules(self, batch: StageBatch, trace: PlanTrace | None = None) -> None:
        """Plans a batch; with `trace` its rules are traced, for batches to come."""
        a, op, inputs = batch.arguments(), self.call.op, batch.inputs
        if trace is not None:
            a.native = trace
            inputs = [TracedBatch(trace, e, b, trace.take_in(e, b)) for e, b in zip(self.call.inputs, inputs)]
        a.batches = [b if i in op.peeks else None for i, b in enumerate(inputs)]
        specs = [b.spec for b in inputs]
        op.plan(a, *specs)
        spec = op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        columns, info = op.params(a, *specs, spec), a.info
        if trace is not None:
            trace.fill_rows([self._rows], [columns], [self.call.op.display_name()])
            spec, info = trace.settled(spec), plain(trace.contiguous(info))
        self._rows.fill(columns)
        self.shape, self.info = np.ascontiguousarray(spec.stored), np.ascontiguousarray(info)
        self._at_shape, self._at_info = address(self.shape), address(self.info)
        self._kind = spec.dtype, spec.layout, int(dtypes.from_numpy(spec.dtype))
        if trace is not None:
            self._program = PlanProgram(trace)

    def again(self, batch: StageBatch) -> bool:
        """Plans another batch of the same kind as before; False if the rules have to."""
        assert self._program is not None
        return self._program.run(batch.context)

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


class Planner:
    """Plans the batches of one decoder."""

    def __init__(self, call: StageCall):
        self.call = call
        self._can_replay = call.op.replays and not call.data_arguments and len(call.inputs) == 1 and not rules_only()
        self._idle: dict[tuple, list[Pictures]] = {}  # those with a program, by the kind of input
        self._by_rules: dict[int, list[Pictures]] = {}  # by the number of pictures
        self._kinds = Kinds(_KEPT_ROWS)

    def plan(self, batch: StageBatch) -> Pictures:
        """Raises what is wrong with the samples. Give it back when the batch has run."""
        kind: tuple | None = None
        if self._can_replay:
            spec = batch.inputs[0].spec
            kind = batch.n, spec.shape.shape[1], spec.dtype, spec.layout
            pictures = self._again(kind, batch)
            if pictures is not None:
                return pictures
            if self._kinds.pays(kind):
                pictures = Pictures(self.call, batch.n)
                try:
                    pictures.by_rules(batch, PlanTrace())
                    pictures.kind = kind
                    return pictures
                except Untraceable:
                    self._kinds.give_up(kind)
                except Exception:  # which comes again if it is not about the program
                    pass
        idle = self._by_rules.get(batch.n)
        try:
            pictures = idle.pop()  # type: ignore[union-attr]
        except (AttributeError, IndexError):
            pictures = Pictures(self.call, batch.n)
        pictures.by_rules(batch)
        return pictures

    def give_back(self, pictures: Pictures) -> None:
        if pictures.kind is not None:
            self._idle.setdefault(pictures.kind, []).append(pictures)
            return
        idle = self._by_rules.get(pictures.n)
        if idle is None:
            if self._kinds.is_full:
                return
            self._kinds.rows += pictures.n
            idle = self._by_rules.setdefault(pictures.n, [])
        if len(idle) < _KEPT_EACH:
            idle.append(pictures)

    def _again(self, kind: tuple, batch: StageBatch) -> Pictures | None:
        idle = self._idle.get(kind)
        try:
            pictures = idle.pop()  # type: ignore[union-attr]
        except (AttributeError, IndexError):
            return None
        agrees = pictures.again(batch)
        goes_on = self._kinds.used(kind, agrees)
        if agrees:
            return pictures
        if goes_on:
            idle.append(pictures)  # type: ignore[union-attr]
        return None
