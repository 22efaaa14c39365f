# SPDX-License-Identifier: Apache-2.0
"""Optical flow by the GPU's engine: frames are converted to its surfaces, its vectors to floats, in the order of the
batch's stream. The CPU waits for the GPU only if there are more frame sizes than engines are kept."""

from __future__ import annotations

import threading
from functools import cache

import numpy as np

from ....core import kernels
from ....core.batch import Spec
from ....core.errors import SampleErrors
from ....core.op import Operator
from ....gpu.batch import DeviceBatch
from ....gpu.optical_flow import Engine, Settings, Surface
from ....gpu.session import GpuPass, Packing, Session
from ....gpu.stage import GpuStage, StageBatch
from ....gpu.stream import Event

_FLOWS = "optical flow"  # key in the session
_MOST_KEPT = 16  # engines, one per frame size and settings
_THREADS, _MOST_BLOCKS = 256, 1024
_SOURCE = '#include "filter/optical_flow.cu"\n'


class OpticalFlowStage(GpuStage):
    @classmethod
    def title(cls, op: Operator) -> str:
        return "an engine of the GPU"

    @classmethod
    def check_device(cls, op: Operator, session: Session) -> None:
        flows_of(session).check(_settings(op))

    def run(self, batch: StageBatch) -> DeviceBatch:
        a, gpu, inputs = self.call.arguments(batch.context), batch.gpu, batch.inputs
        specs = [b.spec for b in inputs]
        self.call.op.plan(a, *specs)
        spec = self.call.op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        flows = flows_of(gpu.session)
        flows.check_sizes(specs[0])
        out = gpu.allocate(spec)
        batch.begin_native()
        started = gpu.timer()
        hints = inputs[1].rows["data"] if a.enable_external_hints else None
        flows.compute(
            gpu, _settings(self.call.op), a.enable_temporal_hints, specs[0], inputs[0].rows["data"], hints, out
        )
        gpu.session.timed(self.call.number, started, gpu.timer())
        return out


def _settings(op: Operator) -> Settings:
    return Settings(*op.settings())  # type: ignore[attr-defined]


def flows_of(session: Session) -> Flows:
    """The Flows of the pipeline, created at first use."""
    return session.keep(_FLOWS, Flows, lambda: Flows(session))


@cache
def _arguments_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("filter/optical_flow.h"), "OpticalFlowArgs")[0]


class Flows:
    """The engines of a pipeline, least recently used first. Batches use them one after the other."""

    def __init__(self, session: Session):
        self._device = session.device
        self._engines: dict[tuple[Settings, int, int], Engine] = {}
        self._last: Event | None = None
        self._lock = threading.Lock()
        with self._device:
            asked = Engine(self._device)
            try:
                self._grids, self._sizes = asked.grids(), asked.sizes()
            finally:
                asked.close()

    def check(self, settings: Settings) -> None:
        for name, wanted, have in zip(("output_grid", "hint_grid"), (settings.grid, settings.hint_grid), self._grids):
            if wanted and wanted not in have:
                raise ValueError(f"{name}={wanted} is not supported by {self._device.name}, which has {have}")

    def check_sizes(self, frames: Spec) -> None:
        size, (least, most) = frames.shape[:, 1:3], self._sizes
        SampleErrors.where(
            ((size < least) | (size > most)).any(axis=1),
            lambda i: (
                f"frames of {size[i, 0]} x {size[i, 1]} pixels (height x width) are not supported by "
                f"{self._device.name}; supported: {least[0]} x {least[1]} to {most[0]} x {most[1]}"
            ),
        )

    def compute(
        self,
        gpu: GpuPass,
        settings: Settings,
        temporal: bool,
        frames: Spec,
        data: np.ndarray,
        hints: np.ndarray | None,
        out: DeviceBatch,
    ) -> None:
        """Computes the flow of all sequences, grouped by frame size."""
        with self._lock:
            if self._last is not None:
                gpu.stream.wait(self._last)
            sizes, which = np.unique(frames.shape[:, 1:3], axis=0, return_inverse=True)
            for k, (height, width) in enumerate(sizes.tolist()):
                engine = self._engine(gpu, settings, height, width)
                rows = np.flatnonzero(which.reshape(-1) == k)
                work = _Work(engine, settings, hints is not None)
                for i in rows.tolist():
                    work.add(
                        frames.shape[i],
                        int(data[i]),
                        int(out.rows["data"][i]),
                        int(hints[i]) if hints is not None else 0,
                    )
                work.run(gpu, temporal)
            self._last = gpu.stream.record()

    def decoded(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        """Called inside `with device:`, when the GPU has finished."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()

    def _engine(self, gpu: GpuPass, settings: Settings, height: int, width: int) -> Engine:
        key = settings, height, width
        engine = self._engines.pop(key, None)
        if engine is None:
            if len(self._engines) == _MOST_KEPT:
                gpu.stream.synchronize()
                self._engines.pop(next(iter(self._engines))).close()
            engine = Engine(self._device)
            try:
                engine.set_up(height, width, settings)
            except BaseException:
                engine.close()
                raise
        self._engines[key] = engine
        return engine


class _Work:
    """Sequences of one frame size. The arguments of all launches are uploaded in one copy."""

    def __init__(self, engine: Engine, settings: Settings, hinted: bool):
        self._engine, self._settings, self._hinted = engine, settings, hinted
        self._rows: list[tuple[int, ...]] = []  # rows of OpticalFlowArgs
        self._steps: list[
            tuple[str, int, int]
        ] = []  # (kernel, index of its row, elements), or ("execute", pair of frames, frame)

    def add(self, shape: np.ndarray, frames: int, out: int, hints: int) -> None:
        n, height, width, channels = shape.tolist()
        engine = self._engine
        for f in range(n if n > 1 else 0):
            surface = engine.frames[f % 2]
            self._convert("flow_frames", frames + f * height * width * channels, surface, channels)
            if f == 0:
                continue
            if engine.hints is not None and self._hinted:
                self._convert(
                    "flow_hints", hints + (f - 1) * engine.hints.height * engine.hints.width * 8, engine.hints
                )
            self._steps.append(("execute", f, f % 2))
            vectors = engine.vectors
            self._convert("flow_vectors", out + (f - 1) * vectors.height * vectors.width * 8, vectors)

    def _convert(self, kernel: str, dense: int, surface: Surface, channels: int = 2) -> None:
        size = surface.height, surface.width
        self._steps.append((kernel, len(self._rows), surface.height * surface.width))
        self._rows.append((dense, surface.address, surface.pitch, *size, channels, self._settings.reversed))

    def run(self, gpu: GpuPass, temporal: bool) -> None:
        if not self._rows:
            return
        packing = Packing()
        args = np.array(self._rows, _arguments_type())
        at = packing.add(args)
        block = packing.place(gpu)
        packing.send(gpu)
        for what, number, more in self._steps:
            if what == "execute":
                first, second = self._engine.frames[more], self._engine.frames[1 - more]
                self._engine.execute(gpu.stream, first, second, temporal and number > 1)
                continue
            elements = more // 4 if what == "flow_frames" else more
            grid = min(-(-elements // _THREADS) or 1, _MOST_BLOCKS), 1, 1
            row = packing.base + at + number * args.itemsize
            gpu.launch(_SOURCE, what, grid, (_THREADS, 1, 1), 0, [], [row], 0, 1)
        del block
