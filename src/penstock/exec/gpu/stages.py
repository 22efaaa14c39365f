# SPDX-License-Identifier: Apache-2.0
"""Stages between CPU and GPU: copies of whole batches, and mixed decoders, which read on the CPU and write on the
GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...core import kernels
from ...core.batch import Batch, Borrowed, Kept
from ...gpu.batch import DeviceBatch, upload, upload_small
from ...graph.node import Node
from ...graph.passes import Stage
from ..arguments import Resolver
from ..context import Context, Timing, explain_failure
from .judged import Judged
from .mixed import Decoding
from .session import GpuPass


def runner(stage: Stage, resolvers: dict[int, Resolver]) -> Callable[[Context, kernels.Pool], None]:
    """What runs a stage of kind "upload", "download", "mixed", "engine" or "judged" for one batch."""
    node = stage.nodes[0]
    if stage.kind == "engine":
        from . import optical_flow

        return lambda ctx, pool: optical_flow.run(ctx, node, resolvers[node.number])
    if stage.kind == "judged":
        return Judged(node, resolvers[node.number]).run
    if stage.kind == "mixed":
        return Decoding(node, resolvers[node.number]).run
    if stage.kind == "upload":
        return _Uploads(stage.nodes).run
    return lambda ctx, pool: _transfer(ctx, node, _download)


def _transfer(ctx: Context, node: Node, move: Callable[[GpuPass, Batch], Batch]) -> None:
    begin = time.monotonic_ns()
    source = node.inputs[0]
    try:
        ctx.values[node.number, 0] = move(ctx.gpu, ctx.values[source.source.number, source.index])
    except Exception as e:
        raise explain_failure(ctx, node, e) from (e if "[internal" in str(e) else None)
    ctx.timings.append(Timing("batch", [node.number], begin, time.monotonic_ns()))


class _Uploads:
    """Copies batches to the GPU; small ones together."""

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
            raise explain_failure(ctx, self._each[0][0], e) from (e if "[internal" in str(e) else None)
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
    """Copies batches to the GPU. One that its owner gives out again and again, as constants and sources that repeat
    their last batch do, is copied once."""

    def __init__(self) -> None:
        self._kept: tuple[Borrowed, Any, bytes, DeviceBatch] | None = None  # of whom, rows, what they hold, the copy

    def __call__(self, gpu: GpuPass, batch: Batch) -> Batch:
        for owner in batch.owners:
            if type(owner) is Borrowed:
                return self._once(gpu, batch, owner)
        return upload(batch, gpu.stream, gpu.session.budget)

    def _once(self, gpu: GpuPass, batch: Batch, borrowed: Borrowed) -> Batch:
        kept, rows = self._kept, batch.rows
        # Rows tell shapes, too.
        if kept is None or kept[0] is not borrowed or (kept[1] is not rows and kept[2] != rows.tobytes()):
            copy = upload(batch, gpu.stream, gpu.session.budget)
            copy.ready = gpu.stream.record()
            copy.owners = (*copy.owners, Kept(borrowed))  # so that nobody gets it to write to
            kept = self._kept = borrowed, rows, rows.tobytes(), copy
        copy = kept[3]
        again = copy.with_rows(batch.spec, copy.rows, copy.owners, batch.sources)
        again.rows_address = copy.rows_address
        again.used_on(gpu.stream)
        return again


def _download(gpu: GpuPass, batch: Batch) -> Batch:
    assert isinstance(batch, DeviceBatch)
    return batch.download(gpu.stream)
