# SPDX-License-Identifier: Apache-2.0
"""GPU operators whose kernel detects bad samples. The result is known when the batch is complete; then the batch is
repeated, and the CPU's kernel determines the errors of these samples. Until then, nothing waits for the GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....core import kernels
from ....core.batch import Batch, Spec
from ....core.errors import InternalError, SampleErrors
from ....core.op import Operator
from ....core.rows import ArgumentRows
from ....gpu.batch import DeviceBatch
from ....gpu.deferred_errors import DeferredErrors, Memory
from ....gpu.forms import described
from ....gpu.launch import Call, Fusion
from ....gpu.session import GpuPass, Packing
from ....gpu.stage import GpuStage, StageBatch, StageCall

_BYTE = np.dtype("u1")


class KernelWithStatus(GpuStage):
    """Runs an operator with one output whose kernel reports a status per sample: a line `// status: field` names an
    `int64_t` field of its arguments, the address of a byte that the kernel sets to 1 for a bad sample."""

    @classmethod
    def title(cls, op: Operator) -> str:
        return "a kernel on the GPU that finds bad samples"

    def __init__(self, call: StageCall):
        super().__init__(call)
        self._fusions: dict[str, Fusion] = {}  # by kernel

    def run(self, batch: StageBatch) -> DeviceBatch:
        a, op, gpu, inputs = self.call.arguments(batch.context), self.call.op, batch.gpu, batch.inputs
        specs = [b.spec for b in inputs]
        op.plan(a, *specs)
        spec = op.outputs(a, *specs)
        assert isinstance(spec, Spec)
        kernel = kernels.kernel(op.kernel_for(a, *specs, spec))
        columns = op.params(a, *specs, spec)
        if batch.doubted is not None:
            _raise_reasons(gpu, batch.pool, np.flatnonzero(batch.doubted), kernel, columns, inputs, spec)
        out = gpu.allocate(spec)
        batch.begin_native()
        self._start(gpu, kernel, columns, inputs, out)
        return out

    def _start(
        self, gpu: GpuPass, kernel: kernels.Kernel, columns: Mapping[str, Any], inputs: list[Any], out: DeviceBatch
    ) -> None:
        """Enqueues all work. The kernel's arguments are uploaded in one copy."""
        n, stream = out.spec.n, gpu.stream
        pointers = {k: np.ascontiguousarray(columns[k]) for k in kernel.pointers & columns.keys()}
        rows = ArgumentRows(n, kernel.args, kernel.pointers)
        rows.fill({k: v for k, v in columns.items() if k not in pointers})
        packing = Packing()
        tensors = [packing.add(b.rows) for b in (out, *inputs)]
        args, statuses = packing.add(rows.array), packing.add(np.zeros(n, _BYTE))
        places = {k: packing.add(v) for k, v in pointers.items()}
        block, each = packing.place(gpu), np.arange(n, dtype="u8")
        base = packing.base
        for k, values in pointers.items():
            rows.views[k][...] = base + places[k] + each * np.uint64(values.strides[0] if len(values) > 1 else 0)
        rows.views[described(kernel.path).status][...] = base + statuses + each
        packing.send(gpu)
        times = gpu.times()
        if times is not None:
            stream.record(times[0])
        for x in self._launches(kernel, rows, inputs, out):
            function = x.source, x.entry, x.grid, x.block, x.shared
            gpu.launch(*function, [base + tensors[t] for t in x.tensors], [base + args], 0, n)
        if times is not None:
            stream.record(times[1])
            gpu.session.timed(self.call.number, *times)
        host = gpu.pinned(n)
        stream.download(host.address, base + statuses, n)
        work, end = stream.work, stream.mark(sleeps=True)
        deferred = DeferredErrors(host.address, n, end, end, (host, block), Memory(), stream, work)
        gpu.deferred_errors.append((self.call.number, None, n, deferred))

    def _launches(self, kernel: kernels.Kernel, rows: ArgumentRows, inputs: list[Any], out: DeviceBatch) -> list[Any]:
        calls = [Call(kernel.path, [0], list(range(1, 1 + len(inputs))), rows.array)]
        fusion = self._fusions.get(kernel.path)
        if fusion is None:
            fusion = self._fusions[kernel.path] = Fusion(calls, {0})
        return fusion.plan(calls, [_as_bytes(b.spec) for b in (out, *inputs)], out.spec.n)


def _as_bytes(spec: Spec) -> Spec:
    """Kernels are compiled for bytes, independent of types and axes."""
    return Spec((spec.volumes() * spec.dtype.itemsize)[:, None], _BYTE)


def _raise_reasons(
    gpu: GpuPass,
    pool: kernels.Pool,
    rows: np.ndarray,
    kernel: kernels.Kernel,
    columns: Mapping[str, Any],
    inputs: list[Any],
    out: Spec,
) -> None:
    """Raises SampleErrors for the samples `rows`, with the reasons of the CPU's kernel."""
    n = len(rows)
    host = [b.take(rows).download(gpu.stream) for b in inputs]
    made = Batch.allocate(Spec(out.shape[rows], out.dtype, out.layout))
    some = {k: v[rows] if isinstance(v, np.ndarray) and len(v) == out.n else v for k, v in columns.items()}
    args, alive = kernel.rows(n, some)
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    pool.run([kernels.Step(kernel, args, [(made.rows, -1)], [(b.rows, -1) for b in host])], n, outcome)
    del alive
    if not outcome.failed:
        raise InternalError(f"what the GPU says of the samples {rows.tolist()} the CPU denies")
    raise SampleErrors({int(rows[i]): outcome.reason(int(i)) for i in outcome.status.nonzero()[0]})
