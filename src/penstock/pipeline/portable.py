# SPDX-License-Identifier: Apache-2.0
"""One epoch of a pipeline for unrelated processes: the picks of each batch, and how to make it there. Batches and
their order are the same as from the pipeline."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.errors import ArgumentValueError, SampleError, WorkerError
from ..core.memory import Buffer
from ..exec.scheduling.policy import Policy
from ..tensors import TensorListCPU
from . import serialization
from .distributed import SerializedPipeline, why_only_here
from .pipeline import Pipeline

if TYPE_CHECKING:
    from ..cluster.batch_maker import BatchMaker
    from ..cluster.messages import Answer, Order
    from ..cluster.packing import Block

_SLACK = mmap.PAGESIZE  # kernels may read a little beyond a sample


class PortablePipeline(NamedTuple):
    """Makes batches in another process. Picklable if the functions that the pipeline calls are."""

    sent: SerializedPipeline
    on_error: str
    described: dict[str, Any]
    version: str

    def open(self) -> OpenedPipeline:
        """In the other process: opens the sources. Raises WorkerError if batches would differ there."""
        here = sys.modules["penstock"].__version__
        if here != self.version:
            raise WorkerError(
                f"this process has penstock {here}, the one that defined the pipeline {self.version}; install the same "
                "version for both"
            )
        maker = self.sent.open()
        theirs = maker.described()
        differs = [k for k in self.described if self.described[k] != theirs.get(k)]
        if differs:
            raise WorkerError(
                "this process finds other data than the one that defined the pipeline, so batches would be others: "
                f"{', '.join(differs)} differ. Paths have to lead to the same files in both"
            )
        return OpenedPipeline(maker, self.on_error)


def portable(pipe: Pipeline, num_threads: int, user: str) -> PortablePipeline:
    """Prepares a pipeline without a GPU, with `num_threads` native threads. Raises ValueError, which names the feature
    `user`, if only its own process can make the batches."""
    from ..cluster.batch_maker import described

    pipe.build()
    plan = pipe._plan
    assert plan is not None
    if plan.uses_gpu:
        raise ArgumentValueError(f"{user} takes pipelines that run on the CPU, and this one has operators on the GPU")
    for node in plan.nodes:
        if why := why_only_here(plan, node, "others"):
            raise ArgumentValueError(node.describe(f"{user} can't be used with this operator: {why}"))
    functions: dict[str, Any] = {}
    content = serialization.content_of(pipe, functions)
    content["arguments"] |= {"num_threads": num_threads, "device_id": None}
    settings = pipe._settings
    sent = SerializedPipeline(content, functions, [n.sites for n in pipe.definition.nodes], settings.storage, None, 0)
    return PortablePipeline(sent, settings.policy.on_error, described(plan), sys.modules["penstock"].__version__)


def orders(pipe: Pipeline, epochs: Sequence[Sequence[int]]) -> list[Order]:
    """The batches of the last of `epochs`, which are lists of batch sizes, for a pipeline that has not run."""
    from ..cluster.messages import Order

    pipe.build()
    plan = pipe._plan
    assert plan is not None
    sources = [(node.number, plan.source_op(node)) for node in plan.sources]
    iteration = at = 0
    made: list[Order] = []
    for sizes in epochs:
        made.clear()
        for n in sizes:
            picks = {number: op.take(n, iteration) for number, op in sources}
            placed = next((p.columns for p in picks.values() if "position" in p.columns), None)
            numbers, position = np.zeros(n, "u4"), np.arange(at, at + n)
            if placed is not None:
                numbers, position = placed["epoch"], placed["position"]
            made.append(Order(len(made), n, numbers, position, iteration, picks))
            iteration, at = iteration + 1, at + n
        for _, op in sources:
            op.reset()  # skips the padding of the epoch
    return made


class OpenedPipeline:
    """Makes the batches of orders. `make` may be called by several threads."""

    def __init__(self, maker: BatchMaker, on_error: str):
        self._maker, self._on_error = maker, on_error
        self._nodes = {n.number: n for n in maker.plan.nodes}

    def begin(self, order: Order) -> Any:
        """Starts reading, without waiting; pass the result to `finish`."""
        return self._maker.begin(order)

    def finish(self, begun: Any) -> tuple[list[TensorListCPU], np.ndarray, list[SampleError]]:
        """Returns the outputs, which samples of the order they contain, and the errors of others. Raises the pipeline's
        exceptions."""
        from ..cluster.messages import raised
        from ..cluster.packing import unpack, with_names

        memory = _ProcessMemory()
        answer: Answer = self._maker.finish(begun, memory)
        policy = Policy(self._on_error)
        for bad, iteration in answer.bad:
            named = {row: (self._nodes[number], reason, source) for row, (number, reason, source) in bad.items()}
            policy.record(named, iteration)
        if answer.outputs is None:
            assert answer.error is not None
            raise raised(answer.error, "this process")
        batches = unpack(answer.outputs, answer.names, memory.parts, tuple(memory.buffers))
        with_names(batches, lambda number: self._maker.plan.source_op(self._nodes[number]))
        assert answer.rows is not None
        return [TensorListCPU.of(b) for b in batches], answer.rows, policy.errors


class _ProcessMemory:
    """Memory of this process for the outputs of one batch."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    @property
    def parts(self) -> list[tuple[int, int, int]]:
        return [(b.address, b.nbytes, b.address) for b in self.buffers]

    def take(self, nbytes: int) -> Block:
        from ..cluster.packing import Block

        buffer = Buffer(nbytes + _SLACK)
        self.buffers.append(buffer)
        return Block(buffer.address, nbytes, buffer.address, buffer)
