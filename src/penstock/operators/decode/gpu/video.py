# SPDX-License-Identifier: Apache-2.0
"""Videos by the GPU's engines: decoded and converted there, while nothing of a frame passes the CPU. Videos that they
don't take, or that are damaged, are decoded by the CPU, whose verdict holds, and copied; so are some of the others, if
the engines are what a pipeline waits for."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ....core import kernels
from ....core.batch import Batch, Spec
from ....core.op import Operator
from ....gpu import nvdec
from ....gpu.batch import DeviceBatch
from ....gpu.copies import copy_samples
from ....gpu.driver import CudaError
from ....gpu.session import Session
from ....gpu.stage import GpuStage, StageBatch
from .sharing import Sharing

_ENGINES = "video decoders"  # the name under which a session keeps them


class VideoDecoding(GpuStage):
    @classmethod
    def title(cls, op: Operator) -> str:
        try:
            nvdec.library()
        except CudaError:
            return "decoding by the CPU, as the driver has no video decoder (libnvcuvid); frames are copied to the GPU"
        return "decoding by the GPU's video engines, and by the CPU what they don't decode"

    def run(self, batch: StageBatch) -> DeviceBatch:
        a, op, gpu = batch.arguments(), self.call.op, batch.gpu
        specs = [b.spec for b in batch.inputs]
        a.batches = list(batch.inputs)
        op.plan(a, *specs)
        spec = op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        columns = op.params(a, *specs, spec)
        out = gpu.allocate(spec)
        batch.begin_native()
        videos, todo = videos_of(gpu.session), np.ones(batch.n, bool)
        if videos.engines is not None:
            todo = self._by_engines(batch, videos, columns, out)
        rows = np.flatnonzero(todo)
        if len(rows):
            rest = _ByCpu(batch, rows, columns, out)
            rest.decode()
            rest.copy()
            videos.by_cpu += len(rows)
        return out

    def _by_engines(self, batch: StageBatch, videos: Videos, columns: dict[str, Any], out: DeviceBatch) -> np.ndarray:
        """Decodes videos by the engines, and the last ones by the CPU at the same time if that is quicker. Returns
        which (n,) the engines have not taken."""
        assert videos.engines is not None
        n, files, gpu = batch.n, batch.inputs[0], batch.gpu
        shared = videos.sharing.begin(n)
        beside = _ByCpu(batch, np.arange(n - shared, n), columns, out) if shared else None
        todo, rows, begin = np.zeros(n, bool), np.arange(n - shared), time.monotonic()
        by_engines_s, running = 0.0, videos.thread.submit(beside.decode) if beside else None
        try:
            some = (_of_rows(columns, rows), files.take(rows), out.take(rows)) if shared else (columns, files, out)
            todo[: n - shared] = videos.engines.decode(gpu, *some)
            by_engines_s = time.monotonic() - begin
        finally:
            videos.sharing.end(shared, by_engines_s, running.result() if running else 0.0)
        if beside:
            beside.copy()
            videos.by_cpu += shared
        return todo


def _of_rows(columns: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    return {k: v[rows] if isinstance(v, np.ndarray) and v.ndim else v for k, v in columns.items()}


class _ByCpu:
    """Some videos of a batch, decoded by the pipeline's threads and copied."""

    def __init__(self, batch: StageBatch, rows: np.ndarray, columns: dict[str, Any], out: DeviceBatch):
        self._batch, self._rows, self._columns = batch, rows, _of_rows(columns, rows)
        self._files, self._out = batch.inputs[0].take(rows), out.take(rows)
        self._staged = Batch.allocate(self._out.spec, None, batch.gpu.pinned)
        self._outcome = kernels.Outcome(np.zeros(len(rows), "i4"), len(rows), 1)

    def decode(self) -> float:
        """The seconds that it took. May be called by another thread than the batch's."""
        begin, n, kernel = time.monotonic(), len(self._rows), kernels.kernel("video/decode_video")
        args, alive = kernel.rows(n, self._columns)
        step = kernels.Step(kernel, args, [(self._staged.rows, -1)], [(self._files.rows, -1)])
        self._batch.pool.run([step], n, self._outcome)
        del alive
        return time.monotonic() - begin

    def copy(self) -> None:
        copy_samples(self._staged, self._out, self._batch.gpu.stream.upload)
        for i in np.flatnonzero(self._outcome.status):
            self._batch.failed[int(self._rows[i])] = self._outcome.reason(int(i))


class Videos:
    """What a pipeline decodes videos with; `engines` is None where there are none, and `why_not` says why."""

    def __init__(self, session: Session):
        self.engines: nvdec.VideoEngines | None = None
        self.why_not, self.by_cpu, self.sharing = "", 0, Sharing()
        self.thread = ThreadPoolExecutor(1, "penstock-videos")  # waits for what the CPU decodes beside the engines
        try:
            self.engines = nvdec.VideoEngines(session)
        except CudaError as e:
            self.why_not = str(e)

    def decoded(self) -> dict[str, int]:
        return {"video engines": self.engines.n_decoded if self.engines else 0, "CPU (video)": self.by_cpu}

    def close(self) -> None:
        self.thread.shutdown()
        if self.engines is not None:
            self.engines.close()


def videos_of(session: Session) -> Videos:
    """That of the pipeline, made at the first batch."""
    return session.keep(_ENGINES, Videos, lambda: Videos(session))
