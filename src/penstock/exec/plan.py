# SPDX-License-Identifier: Apache-2.0
"""The plan of a pipeline: its stages, ready to run for any batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.errors import PipelineError
from ..core.op import Operator
from ..core.source import Source
from ..core.source_name import joined
from ..graph.fusing import fuse
from ..graph.joining import Branches, join_branches
from ..graph.node import DataNode, Edge, Node, edge_of
from ..graph.passes import Stage, kind_of, last_uses, prune, schedule, unused_outputs, uploaded
from ..graph.unread import leave_rest
from . import branches, ranges
from .arguments import Resolver, data_of
from .context import BadSamples, Context, Timing, explain_failure
from .cpu.chain import Chain
from .cpu.joined import Joined
from .cpu.wiring import Wiring, inputs_of
from .frames import FrameContext, as_sequences, frames_of
from .iteration_order import IterationOrder

if TYPE_CHECKING:
    from ..gpu.session import GpuPass

_ANY_TIME = nullcontext()


class Plan:
    """Created once from the traced graph. Has no state of a batch, so several batches may run at once."""

    def __init__(
        self,
        nodes: list[Node],
        outputs: list[DataNode],
        sinks: list[DataNode],
        seed: int,
        given: Collection[int] = (),
    ):
        """`sinks` are computed although they are not outputs. The nodes in `given` are run elsewhere: their outputs are
        in a batch's values from the start."""
        self.outputs = [edge_of(o) for o in outputs]
        self.nodes = fuse(prune(nodes, outputs + sinks, given), outputs + sinks)
        leave_rest(self.nodes, outputs + sinks)
        self.unused = unused_outputs(self.nodes, outputs + sinks)
        self.stages = join_branches(schedule(self.nodes, given), outputs)
        # Numbered among the operators that draw, so that other operators do not change random numbers.
        self.seed, self.drawing = seed, [n for n in nodes if "seed" in n.op.schema]
        self.described: dict[str, Any] | None = None  # cached by checkpoint.describe
        drawing = {n.number: i for i, n in enumerate(self.drawing)}
        self.resolvers = {n.number: Resolver(n, seed, drawing.get(n.number, 0)) for n in self.nodes}
        self.sources: list[Node] = [s.nodes[0] for s in self.stages if s.kind == "source"]
        # The source that determines the batch size comes first.
        self.sources.sort(key=lambda n: not self.source_op(n).sets_batch_size)
        parts = [id(op) for n in self.sources for op in self.source_op(n).parts]
        for n in self.sources:
            if id(n.op) in parts:
                raise ValueError(n.describe("its samples are also mixed by fn.mix; call the reader once more"))
        if len(set(parts)) < len(parts):
            raise ValueError("a reader is mixed by two calls of fn.mix; call the reader once for each")
        self.mixes_samples = any(n.op.mixes_samples for n in self.nodes)
        self.iteration_order = IterationOrder() if any(n.op.in_order for n in self.nodes) else None
        # Whether any thread can make a batch: no user code runs, and nothing blocks.
        self.is_prompt = self.iteration_order is None and all(_is_prompt(n.op) for n in self.nodes)
        self._release = last_uses(self.stages, outputs)
        self.uses_gpu = any(s.kind in ("gpu", "operator", "upload", "download") for s in self.stages)
        self.uses_gpu |= any(n.op.runs_on_gpu and n.device == "gpu" for n in self.nodes)
        self.decodes_on_gpu = any(n.device == "mixed" for n in self.nodes)
        self.is_prompt &= not self.uses_gpu
        self.runs_users_code = self.iteration_order is not None or not all(
            not n.op.sets_batch_size if isinstance(n.op, Source) else _is_prompt(n.op) for n in self.nodes
        )
        # Whether a batch waits for the GPU midway, so that another one should be started meanwhile.
        self.waits = any(s.kind == "download" for s in self.stages)
        self.waits |= any(n.op.runs_on_gpu and n.device == "gpu" for n in self.nodes)
        self.session: Any = None  # the GPU's Session, once the pipeline is built
        # What the CPU makes only to be copied to the GPU.
        self._copied = [(n.number, i) for n in self.nodes if kind_of(n) == "chain" for i in self.uploaded(n)]
        self.chains: dict[int, Chain] = {}  # by the number of their first node
        self.joined: dict[int, Wiring] = {}  # by the id of an Alternative
        self.of_branches: list[Chain] = []
        self._run: list[Callable[[Context, kernels.Pool], None]] = [self._runner(s) for s in self.stages]

    @property
    def ahead(self) -> int:
        """Number of batches kept in flight in addition to those requested: those the GPU works on."""
        return 0 if self.session is None else self.session.ahead

    @property
    def batches_read_ahead(self) -> int:
        """Number of batches to read ahead of those being made, so that the threads that read never wait for Python,
        and to hide the latency of remote data. Batches for a GPU are made so far ahead that local data needs no more.
        """
        sources = [self.source_op(n) for n in self.sources]
        if not all(op.loads_ahead for op in sources):
            return 0
        return max((op.batches_ahead for op in sources if self.session is None or op.is_remote), default=0)

    def check_device(self) -> None:
        """Raises RuntimeError if the GPU lacks something that an operator needs."""
        for node in self.nodes:
            if kind_of(node) == "operator":
                from .gpu.stages import check_device

                check_device(node, self.session)

    def source_op(self, node: Node) -> Source:
        assert isinstance(node.op, Source)
        return node.op

    def uploaded(self, node: Node) -> set[int]:
        """The outputs of a node that are used only on the GPU."""
        return uploaded(self.nodes, node) - {index for number, index in self.outputs if number == node.number}

    def _runner(self, stage: Stage) -> Callable[[Context, kernels.Pool], None]:
        if isinstance(stage, Branches):
            joined = Joined(stage, [self._runner(s) for s in stage.apart], self.resolvers)
            self.joined.update(zip(map(id, stage.alternatives), joined.wirings))
            self.of_branches += joined.chains
            return joined.run
        run = self._runner_in_scope(stage)
        return branches.runner(stage.nodes, run) if stage.nodes[0].scope else run

    def _runner_in_scope(self, stage: Stage) -> Callable[[Context, kernels.Pool], None]:
        if stage.kind in ("chain", "gpu"):
            inside = {n.number for n in stage.nodes}
            needed = {e for e in self.outputs if e[0] in inside}
            for n in self.nodes:
                if n.number not in inside:
                    needed.update(edge_of(d) for d in n.reads() if d.source.number in inside)
            chain = self.chains[stage.nodes[0].number] = chain_of(stage, needed, self.resolvers)
            return chain.run
        return runner_of(stage, self.resolvers, _in_turn(self.iteration_order))

    def run(self, ctx: Context, pool: kernels.Pool) -> list[Batch]:
        """Runs all stages for the samples of `ctx`, whose sources are loaded. Raises BadSamples for samples that fail
        before the last stage, so that later stages don't see them; those that fail in the last stage are in
        `ctx.failed`."""
        return self.settle(ctx, pool, self.start(ctx, pool))

    def start(self, ctx: Context, pool: kernels.Pool) -> list[Batch]:
        """As `run`, but does not wait for the GPU: if `ctx.gpu` is set afterwards, `settle` must be called."""
        if self.session is None:
            return self._run_stages(ctx, pool)
        gpu: GpuPass = self.session.begin()
        loaded = dict(ctx.values)
        ctx.gpu = gpu
        if self._copied:
            ctx.memory = dict.fromkeys(self._copied, gpu.host_memory)
        with gpu:
            doubted: dict[int, np.ndarray] = {}
            try:
                outputs = self._run_stages(ctx, pool)
                gpu.finish(outputs)
            except (BadSamples, PipelineError):
                # If the GPU has found bad samples, the error may come from their undefined values.
                if not (doubted := gpu.doubts()):
                    raise
            if doubted:
                outputs = self._again(ctx, pool, loaded, doubted)
        if gpu.deferred_errors:
            gpu.loaded = loaded
        else:
            ctx.gpu = None
        return outputs

    def settle(self, ctx: Context, pool: kernels.Pool, outputs: list[Batch]) -> list[Batch]:
        """Waits for the GPU's checks of a started batch, repeats the batch if samples are doubted, and returns the
        final outputs."""
        gpu: GpuPass | None = ctx.gpu
        if gpu is None:
            return outputs
        with gpu:
            if doubted := gpu.doubts():
                outputs = self._again(ctx, pool, gpu.loaded, doubted)
        ctx.gpu = None
        return outputs

    def _again(
        self, ctx: Context, pool: kernels.Pool, loaded: dict[Edge, Batch], doubted: dict[int, np.ndarray]
    ) -> list[Batch]:
        """Runs the batch again from the `loaded` sources; `doubted` are rows by node."""
        ctx.start_again(loaded)
        ctx.gpu.doubted = doubted
        outputs = self._run_stages(ctx, pool)
        ctx.gpu.finish(outputs)
        return outputs

    def _run_stages(self, ctx: Context, pool: kernels.Pool) -> list[Batch]:
        last = len(self._run) - 1
        watch = ranges.watching()
        runs = self._run
        if watch is not None:
            runs = [partial(_watched, watch, stage, run) for stage, run in zip(self.stages, runs)]
        for i, (run, release) in enumerate(zip(runs, self._release)):
            run(ctx, pool)
            if ctx.failed and i < last:
                raise BadSamples(dict(ctx.failed))
            for edge in release:
                ctx.values.pop(edge, None)
        outputs = [ctx.values[e] for e in self.outputs]
        return [_own(ctx, pool, b) if b.is_borrowed and b.changes else b for b in outputs]


def _watched(
    watch: ranges.Watch,
    stage: Stage,
    run: Callable[[Context, kernels.Pool], None],
    ctx: Context,
    pool: kernels.Pool,
) -> None:
    """Runs a stage inside a profiler range. Most sources were loaded before."""
    if stage.kind == "source" and not stage.nodes[0].args:
        return
    with watch(ranges.name_of(stage)):
        run(ctx, pool)


def _is_prompt(op: Operator) -> bool:
    return op.is_prompt or (op.is_native() and not isinstance(op, Source))


def _in_turn(order: IterationOrder | None) -> Callable[[Node, Context], AbstractContextManager]:
    """Not a method of the plan, to avoid a reference cycle that would keep it alive."""
    return lambda node, ctx: order.in_turn(node.number, ctx.iteration) if order and node.op.in_order else _ANY_TIME


def _own(ctx: Context, pool: kernels.Pool, batch: Batch) -> Batch:
    """A copy of a batch whose owner keeps using its memory."""
    return batch.packed_copy(pool) if batch.on_host else ctx.gpu.copy(batch)


def chain_of(stage: Stage, needed: set[Edge], resolvers: dict[int, Resolver]) -> Chain:
    """The object that runs a stage of kind "chain" or "gpu"; the outputs `needed` are kept."""
    kind = Chain
    if stage.kind == "gpu":
        from .gpu.chain import GpuChain as kind  # imported only by pipelines with a GPU
    return kind(stage.nodes, needed, resolvers)


def runner_of(
    stage: Stage, resolvers: dict[int, Resolver], turn: Callable[[Node, Context], AbstractContextManager]
) -> Callable[[Context, kernels.Pool], None]:
    """Returns the function that runs a stage of any other kind; operator code runs inside `turn`."""
    node = stage.nodes[0]
    if stage.kind in ("operator", "upload", "download"):
        from .gpu.stages import runner

        return runner(stage, resolvers)
    if stage.kind != "batch":
        if node.args:
            return partial(load_by_arguments, node, resolvers[node.number])
        return lambda ctx, pool: None  # other sources are already loaded
    if node.device != "gpu":
        resolver = resolvers[node.number]
        if node.op.in_order:
            return lambda ctx, pool: run_batchwise(node, resolver, ctx, pool, turn(node, ctx))
        return partial(run_batchwise, node, resolver)
    if node.op.runs_on_gpu:
        from .gpu.functions import runner as on_gpu

        return on_gpu(node, resolvers, turn)
    from .gpu.branches import runner as batchwise

    return batchwise(node, resolvers)


def load_by_arguments(node: Node, resolver: Resolver, ctx: Context, pool: kernels.Pool) -> None:
    """Loads a source whose arguments are data."""
    begin = time.monotonic_ns()
    try:
        batches = ctx.waiting[node.number](resolver.resolve(ctx)).wait()
    except Exception as e:
        raise explain_failure(ctx, node, e) from None
    for i, batch in enumerate(batches):
        ctx.values[node.number, i] = batch
    ctx.timings.append(Timing("load", [node.number], begin, time.monotonic_ns()))


def run_batchwise(
    node: Node,
    resolver: Resolver,
    ctx: Context,
    pool: kernels.Pool,
    turn: AbstractContextManager = _ANY_TIME,
    gpu: Any = None,
) -> None:
    """Runs an operator without a kernel; its code runs inside `turn`. `gpu` is passed to operators that
    `runs_on_gpu`."""
    begin, values, op, rows = time.monotonic_ns(), ctx.values, node.op, ctx
    edges = inputs_of(node)
    counts = frames_of(node, values) if op.runs_frames else None
    try:
        if counts is not None:
            rows = FrameContext(ctx, counts)
            rows.see({e: values[e].spec.layout for e in edges}, data_of(node))
        a = resolver.resolve(rows)
        a.pool, a.sample_of = pool, rows.sample_of
        if gpu is not None:
            a.gpu = gpu
        with turn:
            made = op.run(a, *(rows.values[e] for e in edges))
        outs = made if isinstance(made, tuple) else (made,)
        if counts is not None:
            outs = tuple(as_sequences(b, counts) for b in outs)
    except Exception as e:
        raise explain_failure(rows, node, e) from (e if not isinstance(e, (ValueError, TypeError)) else None)
    inputs = [values[e] for e in edges]
    sources = joined([batch.sources for batch in inputs[: node.op.n_named]])
    for i, batch in enumerate(outs):
        if batch.sources is None:
            batch.sources = sources
        values[node.number, i] = batch
    ctx.timings.append(Timing("batch", [node.number], begin, time.monotonic_ns()))
