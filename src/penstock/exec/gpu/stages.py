# SPDX-License-Identifier: Apache-2.0
"""Stages between CPU and GPU: copies of whole batches, and operators' own stages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...core import kernels
from ...core.batch import Batch, Borrowed, Kept
from ...core.source_name import joined
from ...gpu.batch import DeviceBatch, upload, upload_small
from ...gpu.session import GpuPass, Session
from ...gpu.stage import StageBatch, StageCall, stage_of
from ...graph.node import Node, edge_of
from ...graph.passes import Stage
from ..arguments import Resolver
from ..context import Context, Timing, cause_of, explain_failure
from ..cpu.wiring import inputs_of


def runner(stage: Stage, resolver: Resolver) -> Callable[[Context, kernels.Pool], None]:
    """Returns the function that runs a stage of kind "operator", "upload" or "download" for one batch."""
    node = stage.nodes[0]
    if stage.kind == "operator":
        return OperatorStage(node, resolver).run
    if stage.kind == "upload":
        return _Uploads(stage.nodes).run
    return lambda ctx, pool: _transfer(ctx, node, _download)


def check_device(node: Node, session: Session) -> None:
    """Raises RuntimeError if the GPU lacks something that the operator's stage needs."""
    try:
        stage_of(node.op).check_device(node.op, session)
    except (RuntimeError, ValueError) as e:
        raise RuntimeError(node.describe(str(e))) from None


class OperatorStage:
    """Runs an operator's own GPU stage."""

    def __init__(self, node: Node, resolver: Resolver):
        self.node = node
        self._inputs = inputs_of(node)
        call = StageCall(node.op, node.number, tuple(self._inputs), tuple(node.args), resolver.resolve)
        self._stage = stage_of(node.op)(call)

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        begin = time.monotonic_ns()
        node, gpu, values = self.node, ctx.gpu, ctx.values
        inputs = [values[e] for e in self._inputs]
        batch = StageBatch(ctx, pool, inputs, gpu.doubted.get(node.number))
        try:
            for x in inputs:
                x.used_on(gpu.stream)
            out = self._stage.run(batch)
        except Exception as e:
            raise explain_failure(ctx, node, e) from cause_of(e)
        for row, reason in batch.failed.items():
            ctx.status[row] = 1
            ctx.failed[row] = node, reason, ctx.source_of(node, row)
        out.sources = joined([x.sources for x in inputs])
        values[node.number, 0] = out
        ctx.timings.append(Timing("gpu", [node.number], begin, time.monotonic_ns(), batch.native_ns))


def _transfer(ctx: Context, node: Node, move: Callable[[GpuPass, Batch], Batch]) -> None:
    begin = time.monotonic_ns()
    source = node.inputs[0]
    try:
        ctx.values[node.number, 0] = move(ctx.gpu, ctx.values[edge_of(source)])
    except Exception as e:
        raise explain_failure(ctx, node, e) from cause_of(e)
    ctx.timings.append(Timing("batch", [node.number], begin, time.monotonic_ns()))


class _Uploads:
    """Copies batches to the GPU; small ones in one copy."""

    def __init__(self, nodes: list[Node]):
        self._each = [(n, (n.number, 0), (n.inputs[0].source.number, n.inputs[0].index), _Upload()) for n in nodes]

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        if len(self._each) == 1:
            node, _, _, move = self._each[0]
            return _transfer(ctx, node, move)
        begin = time.monotonic_ns()
        values, gpu = ctx.values, ctx.gpu
        try:
            copies = upload_small([values[x[2]] for x in self._each], gpu.stream, gpu.session.budget)
        except Exception as e:
            raise explain_failure(ctx, self._each[0][0], e) from cause_of(e)
        numbers = []
        for (node, edge, _, _), copy in zip(self._each, copies):
            if copy is not None:
                values[edge] = copy
                numbers.append(node.number)
        if numbers:
            ctx.timings.append(Timing("batch", numbers, begin, time.monotonic_ns()))
        for (node, _, _, move), copy in zip(self._each, copies):
            if copy is None:
                _transfer(ctx, node, move)


class _Upload:
    """Copies batches to the GPU. A batch that its owner returns repeatedly, as constants and repeating sources do, is
    copied once."""

    def __init__(self) -> None:
        self._kept: tuple[Borrowed, Any, bytes, DeviceBatch] | None = None  # owner, rows, the rows' bytes, the copy

    def __call__(self, gpu: GpuPass, batch: Batch) -> Batch:
        if isinstance(batch, DeviceBatch):  # a source has loaded it to the GPU
            batch.used_on(gpu.stream)
            return batch
        for owner in batch.owners:
            if type(owner) is Borrowed:
                return self._once(gpu, batch, owner)
        return upload(batch, gpu.stream, gpu.session.budget)

    def _once(self, gpu: GpuPass, batch: Batch, borrowed: Borrowed) -> Batch:
        kept, rows = self._kept, batch.rows
        # Rows also contain shapes.
        if kept is None or kept[0] is not borrowed or (kept[1] is not rows and kept[2] != rows.tobytes()):
            copy = upload(batch, gpu.stream, gpu.session.budget)
            copy.ready = gpu.stream.record()
            copy.owners = (*copy.owners, Kept(borrowed))  # so that nobody writes to it
            kept = self._kept = borrowed, rows, rows.tobytes(), copy
        copy = kept[3]
        again = copy.with_rows(batch.spec, copy.rows, copy.owners, batch.sources)
        again.rows_address = copy.rows_address
        again.used_on(gpu.stream)
        return again


def _download(gpu: GpuPass, batch: Batch) -> Batch:
    assert isinstance(batch, DeviceBatch)
    return batch.download(gpu.stream)
