# SPDX-License-Identifier: Apache-2.0
"""Videos by the GPU's engines: decoded and converted there, while nothing of a frame passes the CPU. Videos that they
don't take, or that are damaged, are decoded by the CPU, whose verdict holds, and copied."""

from __future__ import annotations

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
        a, op, gpu, files = batch.arguments(), self.call.op, batch.gpu, batch.inputs[0]
        specs = [b.spec for b in batch.inputs]
        a.batches = list(batch.inputs)
        op.plan(a, *specs)
        spec = op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        columns = op.params(a, *specs, spec)
        out = gpu.allocate(spec)
        batch.begin_native()
        videos = videos_of(gpu.session)
        todo = np.ones(batch.n, bool)
        if videos.engines is not None:
            todo = videos.engines.decode(gpu, columns, files, out)
        rows = np.flatnonzero(todo)
        if len(rows):
            videos.by_cpu += len(rows)
            some = {k: v[rows] if isinstance(v, np.ndarray) and v.ndim else v for k, v in columns.items()}
            _by_cpu(batch, rows, some, files.take(rows), out.take(rows))
        return out


def _by_cpu(batch: StageBatch, rows: np.ndarray, columns: dict[str, Any], files: Batch, out: DeviceBatch) -> None:
    gpu, n, kernel = batch.gpu, len(rows), kernels.kernel("video/decode_video")
    staged = Batch.allocate(out.spec, None, gpu.pinned)
    args, alive = kernel.rows(n, columns)
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    batch.pool.run([kernels.Step(kernel, args, [(staged.rows, -1)], [(files.rows, -1)])], n, outcome)
    del alive
    copy_samples(staged, out, gpu.stream.upload)
    for i in np.flatnonzero(outcome.status):
        batch.failed[int(rows[i])] = outcome.reason(int(i))


class Videos:
    """What a pipeline decodes videos with; `engines` is None where there are none, and `why_not` says why."""

    def __init__(self, session: Session):
        self.engines: nvdec.VideoEngines | None = None
        self.why_not, self.by_cpu = "", 0
        try:
            self.engines = nvdec.VideoEngines(session)
        except CudaError as e:
            self.why_not = str(e)

    def decoded(self) -> dict[str, int]:
        return {"video engines": self.engines.n_decoded if self.engines else 0, "CPU (video)": self.by_cpu}

    def close(self) -> None:
        if self.engines is not None:
            self.engines.close()


def videos_of(session: Session) -> Videos:
    """That of the pipeline, made at the first batch."""
    return session.keep(_ENGINES, Videos, lambda: Videos(session))
