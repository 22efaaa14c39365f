# SPDX-License-Identifier: Apache-2.0
"""The plan of a pipeline: its stages, ready to run for any batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.errors import PipelineError
from ..core.op import Operator
from ..core.source import Source
from ..graph.fusing import fuse
from ..graph.joining import Branches, join_branches
from ..graph.node import DataNode, Edge, Node, edge_of
from ..graph.passes import Stage, kind_of, last_uses, prune, readers_of, schedule, unused_outputs
from ..graph.unread import leave_rest
from . import branches, ranges
from .arguments import Resolver
from .batchwise import Batchwise, LoadedByArguments
from .branches import Run
from .context import BadSamples, Context
from .cpu.chain import Chain
from .cpu.joined import Joined
from .iteration_order import IterationOrder

if TYPE_CHECKING:
    from ..gpu.session import GpuPass


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
        self._readers = readers_of(self.nodes)
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
        self.moves_decoding = any(n.device == "mixed" and n.op.mixed_on_cpu() for n in self.nodes)
        # Whether the CPU does no more than reading images for the GPU and drawing random numbers.
        self.only_feeds_gpu = all(n.op.mixed_on_cpu() for n in self.nodes if n.device == "mixed") and not any(
            n.inputs for s in self.stages if s.kind in ("chain", "branches") for n in s.nodes
        )
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
        self.chains: dict[Stage, Sequence[Chain]] = {}  # by stage; of Branches: one per branch
        self._run: list[Run] = [self._runner(s) for s in self.stages]

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
        """The outputs of a node that are used only on the GPU: all that read them copy all samples there."""

        def is_copied(edge: Edge) -> bool:
            readers = self._readers.get(edge, [])
            return bool(readers) and all(kind_of(n) == "upload" and not n.scope for n in readers)

        edges = ((node.number, index) for index in range(node.n_outputs))
        return {edge[1] for edge in edges if edge not in self.outputs and is_copied(edge)}

    def _runner(self, stage: Stage) -> Run:
        """Returns the function that runs a stage for a batch."""
        if isinstance(stage, Branches):
            joined = Joined(stage, [self._runner(s) for s in stage.apart], self.resolvers)
            self.chains[stage] = joined.chains
            return joined.run
        node = stage.nodes[0]
        run = self._runner_of_all(stage, node, self.resolvers[node.number])
        return branches.runner(node.scope, stage.nodes, run) if node.scope else run

    def _runner_of_all(self, stage: Stage, node: Node, resolver: Resolver) -> Run:
        """Returns the function that runs a stage, whose first node is `node`, for all samples of a context."""
        if stage.kind in ("chain", "gpu"):
            inside = {n.number for n in stage.nodes}
            needed = {e for e in self.outputs if e[0] in inside}
            for edge in ((n.number, index) for n in stage.nodes for index in range(n.n_outputs)):
                if any(reader.number not in inside for reader in self._readers.get(edge, ())):
                    needed.add(edge)
            kind = Chain
            if stage.kind == "gpu":
                from .gpu.chain import GpuChain as kind  # imported only by pipelines with a GPU
            self.chains[stage] = [kind(stage.nodes, needed, self.resolvers)]
            return self.chains[stage][0].run
        if stage.kind in ("operator", "upload", "download"):
            from .gpu.stages import runner

            return runner(stage, resolver)
        if stage.kind == "batch":
            return Batchwise(node, resolver, self.iteration_order if node.op.in_order else None).run
        if node.args:
            return LoadedByArguments(node, resolver).run
        return lambda ctx, pool: None  # other sources are already loaded

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
        return [_own(ctx, pool, b) if b.changes else b for b in outputs]


def _watched(watch: ranges.Watch, stage: Stage, run: Run, ctx: Context, pool: kernels.Pool) -> None:
    """Runs a stage inside a profiler range. Most sources were loaded before."""
    if stage.kind == "source" and not stage.nodes[0].args:
        return
    with watch(ranges.name_of(stage)):
        run(ctx, pool)


def _is_prompt(op: Operator) -> bool:
    return op.is_prompt or (op.is_native() and not isinstance(op, Source))


def _own(ctx: Context, pool: kernels.Pool, batch: Batch) -> Batch:
    """A copy of a batch whose owner keeps using its memory."""
    return batch.packed_copy(pool) if batch.on_host else ctx.gpu.copy(batch)
