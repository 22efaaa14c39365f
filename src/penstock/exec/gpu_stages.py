# SPDX-License-Identifier: Apache-2.0
"""Stages between CPU and GPU: copies of whole batches, and mixed decoders, which read on the CPU and write on the
GPU."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..core import kernels
from ..core.batch import Batch
from ..gpu.batch import DeviceBatch, upload
from ..graph.node import Node
from ..graph.passes import Stage
from .arguments import Resolver
from .context import Context, Timing, explain_failure
from .gpu import GpuPass
from .mixed import decode


def runner(stage: Stage, resolvers: dict[int, Resolver]) -> Callable[[Context, kernels.Pool], None]:
    """What runs a stage of kind "upload", "download" or "mixed" for one batch."""
    node = stage.nodes[0]
    if stage.kind == "mixed":
        return lambda ctx, pool: decode(ctx, pool, node, resolvers[node.number])
    move = _upload if stage.kind == "upload" else _download
    return lambda ctx, pool: _transfer(ctx, node, stage.kind, move)


def _transfer(ctx: Context, node: Node, kind: str, move: Callable[[GpuPass, Batch], Batch]) -> None:
    begin = time.monotonic_ns()
    source = node.inputs[0]
    try:
        ctx.values[node.number, 0] = move(ctx.gpu, ctx.values[source.source.number, source.index])
    except Exception as e:
        raise explain_failure(ctx, node, e) from (e if "[internal" in str(e) else None)
    ctx.timings.append(Timing("batch", [node.number], begin, time.monotonic_ns()))


def _upload(gpu: GpuPass, batch: Batch) -> Batch:
    return upload(batch, gpu.stream, gpu.session.budget)


def _download(gpu: GpuPass, batch: Batch) -> Batch:
    assert isinstance(batch, DeviceBatch)
    return batch.download(gpu.stream)
