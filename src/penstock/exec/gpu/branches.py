# SPDX-License-Identifier: Apache-2.0
"""Operators without a kernel that regroup GPU batches. Conditionals split and merge samples by address, on the CPU,
without copying samples."""

from __future__ import annotations

from collections.abc import Callable

from ...core import kernels
from ...gpu.batch import DeviceBatch
from ...graph.node import Node, edge_of
from ..arguments import Resolver
from ..context import Context


def runner(node: Node, resolvers: dict[int, Resolver]) -> Callable[[Context, kernels.Pool], None]:
    """Returns the function that runs the operator for one batch."""
    from ..plan import run_batchwise  # imported here, as it imports this module

    def run(ctx: Context, pool: kernels.Pool) -> None:
        stream = ctx.gpu.stream
        for d in node.inputs:
            batch = ctx.values[edge_of(d)]
            if isinstance(batch, DeviceBatch):
                batch.used_on(stream)
        run_batchwise(node, resolvers[node.number], ctx, pool)
        given = [ctx.values[edge_of(d)] for d in node.inputs]
        for i in range(len(node.outputs)):
            out = ctx.values[node.number, i]
            if isinstance(out, DeviceBatch) and all(out is not batch for batch in given):
                out.stream, out.ready = stream, None  # the stream waits for all inputs

    return run
