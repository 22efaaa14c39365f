# SPDX-License-Identifier: Apache-2.0
"""Makes the batches in a worker."""

from __future__ import annotations

import threading
from typing import Any

from ..core.batch import Batch
from ..exec.context import Context
from ..exec.plan import Plan
from ..exec.scheduling import checkpoint
from ..exec.scheduling.policy import Policy
from ..exec.scheduling.producer import Producer
from ..graph.node import Node
from .messages import Answer, Order, portable, told
from .packing import Memory, Names, pack


class _Reported(Exception):
    """A bad sample must be raised by the trainer, which knows the user's code line."""


class _Notes(threading.local):
    """Bad samples and timings of the batch that a thread is making."""

    def __init__(self) -> None:
        self.bad: list[Any] = []
        self.timings: list[Any] = []


class _Reporting(Policy):
    """Collects bad samples; the trainer's policy lists and counts them."""

    def __init__(self, on_error: str, notes: _Notes):
        super().__init__(on_error)
        self._notes = notes

    def record(self, samples: dict[int, tuple[Node, str, str]], iteration: int) -> None:
        plain = {row: (node.number, reason, source) for row, (node, reason, source) in samples.items()}
        self._notes.bad.append((plain, iteration))
        if self.on_error == "raise":
            raise _Reported


class Begun:
    """An order whose samples are being loaded."""

    __slots__ = ("context", "error", "order")

    def __init__(self, order: Order):
        self.order = order
        self.context = Context(order.n, order.epoch, order.position, order.iteration)
        self.error: BaseException | None = None


class BatchMaker:
    """Makes batches of picks with a plan whose sources are open. `finish` may be called by several threads."""

    def __init__(self, plan: Plan, on_error: str, num_threads: int, first_thread: int):
        self.plan = plan
        self._notes, self._first_thread = _Notes(), first_thread
        self._producer = Producer(plan, _Reporting(on_error, self._notes), num_threads, self._record)
        for node in plan.sources:
            plan.source_op(node).copier = self._producer.io
        ops = {node.number: plan.source_op(node) for node in plan.sources}
        self._readers = {op.source_name: number for number, op in ops.items() if hasattr(op, "source_name")}

    def described(self) -> dict[str, Any]:
        """What must be equal at the trainer, so that the picks give the same samples and random numbers."""
        return described(self.plan)

    def begin(self, order: Order) -> Begun:
        """Starts reading, without waiting."""
        begun = Begun(order)
        try:
            self._producer.begin(begun.context, order.picks)
        except Exception as e:
            begun.error = e
        return begun

    def finish(self, begun: Begun, memory: Memory) -> Answer:
        """Makes the batch."""
        notes, order = self._notes, begun.order
        notes.bad, notes.timings = [], []
        error = outputs = rows = None
        names: list[Names] = []
        try:
            if begun.error is not None:
                raise begun.error
            begun.context.memory = dict.fromkeys(self.plan.outputs, memory.take)
            context, picks, _ = self._producer.load(begun.context, order.picks)
            batches, rows = self._producer.produce(context, picks)
            outputs, names = self._pack(batches, memory)
        except _Reported:
            pass
        except Exception as e:
            error = told(e)
        return Answer(order.number, outputs, names, rows, notes.bad, notes.timings, error, [], 0)

    def _pack(self, batches: list[Batch], memory: Memory) -> Any:
        return pack(batches, memory, self._producer.pool, self._readers)

    def _record(self, ctx: Context) -> None:
        timings, ctx.timings = ctx.timings, []
        self._notes.timings.append((ctx.iteration, ctx.n, portable(timings, self._first_thread)))


def described(plan: Plan) -> dict[str, Any]:
    nodes = [[n.number, n.op.fn_name, n.device] for n in plan.nodes]
    return {**checkpoint.describe(plan), "nodes": nodes, "outputs": [list(e) for e in plan.outputs]}
