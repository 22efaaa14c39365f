# SPDX-License-Identifier: Apache-2.0
"""Operators without a kernel on batches of the GPU. Conditionals split and merge samples by their addresses, on the
CPU: none is copied. Functions of the user's are called."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from ..core import kernels
from ..gpu.batch import DeviceBatch
from ..graph.node import Node
from .arguments import Resolver
from .context import Context
from .turns import Turns


def runner(node: Node, resolvers: dict[int, Resolver], turns: Turns | None) -> Callable[[Context, kernels.Pool], None]:
    """What runs the operator for one batch."""
    from .plan import run_batchwise  # which imports this module

    def run(ctx: Context, pool: kernels.Pool) -> None:
        stream = ctx.gpu.stream
        for d in node.inputs:
            batch = ctx.values[d.source.number, d.index]
            if isinstance(batch, DeviceBatch):
                batch.used_on(stream)
        turn = turns.of(node.number, ctx.iteration) if turns is not None and node.op.in_order else nullcontext()
        run_batchwise(node, resolvers[node.number], ctx, pool, turn, ctx.gpu)
        if node.op.runs_on_gpu:
            return
        out = ctx.values[node.number, 0]
        if isinstance(out, DeviceBatch) and all(out is not ctx.values[d.source.number, d.index] for d in node.inputs):
            out.stream, out.ready = stream, None  # the stream waits for both inputs

    return run
