# SPDX-License-Identifier: Apache-2.0
"""Video decoding by the GPU's engines: frames are decoded and converted without passing through the CPU. Unsupported
and damaged videos are decoded by the CPU, whose errors are final, and copied; and some others as well if the engines
are the bottleneck."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ....core import kernels
from ....core.batch import Batch, Spec
from ....core.memory import Buffer
from ....core.op import Operator
from ....gpu import nvdec
from ....gpu.batch import DeviceBatch
from ....gpu.copies import copy_samples
from ....gpu.driver import CudaError
from ....gpu.session import Session
from ....gpu.stage import GpuStage, StageBatch
from .sharing import Sharing

_ENGINES = "video decoders"  # key in the session


class VideoDecoding(GpuStage):
    @classmethod
    def title(cls, op: Operator) -> str:
        try:
            nvdec.library()
        except CudaError:
            return "decoding by the CPU, as the driver has no video decoder (libnvcuvid); frames are copied to the GPU"
        return "decoding by the GPU's video engines, and by the CPU what they don't decode"

    def run(self, batch: StageBatch) -> DeviceBatch:
        a, op, gpu = self.call.arguments(batch.context), self.call.op, batch.gpu
        specs = [b.spec for b in batch.inputs]
        a.batches = list(batch.inputs)
        op.plan(a, *specs)
        spec = op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        columns = op.params(a, *specs, spec)
        out = gpu.allocate(spec)
        batch.begin_native()
        videos, todo = videos_of(gpu.session, batch.pool), np.ones(batch.n, bool)
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
        """Decodes videos by the engines, and the last ones concurrently by the CPU if this is faster. Returns which
        (n,) the engines refused."""
        assert videos.engines is not None
        n, files, gpu = batch.n, batch.inputs[0], batch.gpu
        shared = videos.sharing.begin(n)
        # Not in pinned memory: getting some for more videos than before stops the engines for up to 0.3 s.
        shares = [np.array([row]) for row in range(n - shared, n)]
        beside = [_ByCpu(batch, rows, columns, out, is_pinned=False) for rows in shares]
        todo, rows, begin = np.zeros(n, bool), np.arange(n - shared), time.monotonic()
        by_engines_s, running = 0.0, [videos.threads.submit(video.decode) for video in beside]
        try:
            some = (_of_rows(columns, rows), files.take(rows), out.take(rows)) if shared else (columns, files, out)
            todo[: n - shared] = videos.engines.decode(gpu, *some)
            by_engines_s = time.monotonic() - begin
        finally:
            by_cpu_s = max((video.result() for video in running), default=begin) - begin
            videos.sharing.end(shared, by_engines_s, by_cpu_s)
        for video in beside:
            video.copy()
        if beside:  # the GPU may still read memory that is not pinned
            gpu.stream.synchronize()
        videos.by_cpu += shared
        return todo


def _of_rows(columns: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    return {k: v[rows] if isinstance(v, np.ndarray) and v.ndim else v for k, v in columns.items()}


class _ByCpu:
    """Decodes some videos of a batch by the pipeline's threads, and copies them."""

    def __init__(
        self, batch: StageBatch, rows: np.ndarray, columns: dict[str, Any], out: DeviceBatch, is_pinned: bool = True
    ):
        self._batch, self._rows, self._columns = batch, rows, _of_rows(columns, rows)
        self._files, self._out = batch.inputs[0].take(rows), out.take(rows)
        self._memory = batch.gpu.pinned if is_pinned else Buffer
        self._staged: Batch | None = None
        self._outcome = kernels.Outcome(np.zeros(len(rows), "i4"), len(rows), 1)

    def decode(self) -> float:
        """Returns when it was done, by the monotonic clock. May be called by any thread."""
        n, kernel = len(self._rows), kernels.kernel("video/decode_video")
        # Not before, as many more videos may be waiting for a thread.
        self._staged = Batch.allocate(self._out.spec, None, self._memory)
        args, alive = kernel.rows(n, self._columns)
        step = kernels.Step(kernel, args, [(self._staged.rows, -1)], [(self._files.rows, -1)])
        self._batch.pool.run([step], n, self._outcome)
        del alive
        return time.monotonic()

    def copy(self) -> None:
        assert self._staged is not None
        copy_samples(self._staged, self._out, self._batch.gpu.stream.upload)
        for i in np.flatnonzero(self._outcome.status):
            self._batch.failed[int(self._rows[i])] = self._outcome.reason(int(i))


class Videos:
    """The video decoders of a pipeline, whose native threads are `pool`. `engines` is None if there are none, for the
    reason `why_not`."""

    def __init__(self, session: Session, pool: kernels.Pool):
        self.engines: nvdec.VideoEngines | None = None
        self.why_not, self.by_cpu, self.sharing = "", 0, Sharing()
        # They hand the CPU's share of each batch in flight to the native threads while the engines decode.
        self.threads = ThreadPoolExecutor(pool.n, "penstock-videos")
        try:
            self.engines = nvdec.VideoEngines(session)
        except CudaError as e:
            self.why_not = str(e)

    def decoded(self) -> dict[str, int]:
        return {"video engines": self.engines.n_decoded if self.engines else 0, "CPU (video)": self.by_cpu}

    def close(self) -> None:
        self.threads.shutdown()
        if self.engines is not None:
            self.engines.close()


def videos_of(session: Session, pool: kernels.Pool) -> Videos:
    """The Videos of the pipeline, created at the first batch."""
    return session.keep(_ENGINES, Videos, lambda: Videos(session, pool))
