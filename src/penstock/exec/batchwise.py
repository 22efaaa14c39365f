# SPDX-License-Identifier: Apache-2.0
"""Runs operators that are not part of a chain: those that process whole batches in Python, and sources whose arguments
are data."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..core import kernels
from ..core.batch import Batch
from ..core.op import Arguments
from ..core.source_name import joined
from ..graph.node import Node
from .arguments import Resolver, data_of
from .context import Context, Timing, explain_failure
from .cpu.wiring import inputs_of
from .frames import FrameContext, as_sequences, frames_of
from .iteration_order import IterationOrder


class Batchwise:
    """Runs an operator without a kernel, on either device; with an `order`, for one batch after the other."""

    def __init__(self, node: Node, resolver: Resolver, order: IterationOrder | None):
        self._node, self._resolver, self._order = node, resolver, order
        self._edges = inputs_of(node)
        self._functions: Any = None
        if node.device == "gpu" and node.op.runs_on_gpu:
            from .gpu.functions import Functions  # imported only by pipelines with a GPU

            self._functions = Functions()

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        begin, node, values = time.monotonic_ns(), self._node, ctx.values
        inputs = [values[e] for e in self._edges]
        if node.device == "gpu":
            for batch in inputs:
                batch.used_on(ctx.gpu.stream)
        outs = self._outputs(ctx, pool, inputs)
        sources = joined([batch.sources for batch in inputs[: node.op.n_named]]) if inputs else None
        for i, batch in enumerate(outs):
            if batch.sources is None:
                batch.sources = sources
            if not batch.on_host and self._functions is None and all(batch is not x for x in inputs):
                batch.stream, batch.ready = ctx.gpu.stream, None  # the stream waits for all inputs
            values[node.number, i] = batch
        ctx.timings.append(Timing("batch", [node.number], begin, time.monotonic_ns()))

    def _outputs(self, ctx: Context, pool: kernels.Pool, inputs: list[Batch]) -> tuple[Any, ...]:
        node, op, rows = self._node, self._node.op, ctx
        counts = frames_of(node, ctx.values) if op.runs_frames else None
        try:
            if counts is not None:
                rows = FrameContext(ctx, counts)
                rows.see({e: ctx.values[e].spec.layout for e in self._edges}, data_of(node))
                inputs = [rows.values[e] for e in self._edges]
            a = self._resolver.resolve(rows)
            a.pool, a.sample_of = pool, rows.sample_of
            if self._order is None and self._functions is None:
                made = op.run(a, *inputs)
            else:
                with self._turn(ctx, a):
                    made = op.run(a, *inputs)
            outs = made if isinstance(made, tuple) else (made,)
            return outs if counts is None else tuple(as_sequences(b, counts) for b in outs)
        except Exception as e:
            raise explain_failure(rows, node, e) from (e if not isinstance(e, (ValueError, TypeError)) else None)

    def _turn(self, ctx: Context, a: Arguments) -> AbstractContextManager:
        """The context in which the operator runs. On the GPU, also gives `a` its arrays there."""
        order = self._order
        turn = nullcontext() if order is None else order.in_turn(self._node.number, ctx.iteration)
        if self._functions is None:
            return turn
        a.gpu = self._functions.arrays(ctx.gpu)
        return self._functions.keep(turn, ctx.gpu.stream)


class LoadedByArguments:
    """Loads a source whose arguments are data."""

    def __init__(self, node: Node, resolver: Resolver):
        self._node, self._resolver = node, resolver

    def run(self, ctx: Context, pool: kernels.Pool) -> None:
        begin, node = time.monotonic_ns(), self._node
        try:
            batches = ctx.waiting[node.number](self._resolver.resolve(ctx)).wait()
        except Exception as e:
            raise explain_failure(ctx, node, e) from None
        for i, batch in enumerate(batches):
            ctx.values[node.number, i] = batch
        ctx.timings.append(Timing("load", [node.number], begin, time.monotonic_ns()))
