# SPDX-License-Identifier: Apache-2.0
"""The work of an executor's threads: one picks and loads, the others run."""

from __future__ import annotations

import sys
import time

import numpy as np

from ...core.errors import DataError, PipelineError, WorkerError, different_sizes, of_source
from ...core.rows import allocate, indices
from ..context import Context, explain_failure
from ..plan import Plan
from .checkpoint import State
from .constants import SCHEDULING
from .policy import Policy
from .producer import Producer
from .statistics import Statistics
from .workers import Ticket

_UINT32 = np.dtype("u4")


class Production:
    """The tasks of a ticket's batch, in order: `begin`, `load`, `run`, and `settle` if the GPU must be waited for."""

    def __init__(self, plan: Plan, producer: Producer, policy: Policy, statistics: Statistics):
        self.plan, self.policy, self.statistics = plan, policy, statistics
        self._sources = [(node, plan.source_op(node)) for node in plan.sources]
        self.producer = producer
        for node in plan.sources:
            plan.source_op(node).copier = self.producer.io
        self.position = 0
        self.keeps_state = False  # whether states are saved for checkpoints
        self.ended = False  # a source has ended; nothing is taken from any source until the next epoch
        self._took: tuple[int, ...] = (SCHEDULING.brief_ns,)  # run times of the last batches, in ns
        # Number of batches loaded concurrently; 1 if a source does not load ahead, no limit with workers.
        reads = all(op.loads_ahead for _, op in self._sources)
        self.loads_at_once = SCHEDULING.loaded_at_once + plan.batches_read_ahead if reads else 1
        if producer.is_away:
            self.loads_at_once = sys.maxsize

    def begin(self, ticket: Ticket) -> None:
        """Takes picks in order, so that an iteration depends only on earlier ones, and starts loading them."""
        for part in ticket.parts:
            try:
                part.context = self._pick(part)
            except BaseException:
                if part is not ticket:
                    self.go_back(part)  # it will be picked again, by itself
                raise
            finally:
                if self.keeps_state:
                    part.after = self.state(part.index + 1)
        ticket.join()
        assert ticket.context is not None
        self.producer.begin(ticket.context, ticket.picks)

    def load(self, ticket: Ticket) -> None:
        """Waits until the batch is loaded; starts loading it if that has not happened yet."""
        if ticket.context is None:
            self.begin(ticket)
        assert ticket.context is not None
        ticket.context, ticket.picks, _ = self.producer.load(ticket.context, ticket.picks)
        if self.plan.iteration_order is not None:
            self.plan.iteration_order.enter(ticket.index)
        ticket.is_brief = self.is_brief()

    @property
    def can_share_a_core(self) -> bool:
        """Whether the threads mostly wait for each other, and run no user code, which might start its own threads and
        processes."""
        return self.plan.uses_gpu and not self.plan.runs_users_code

    def is_brief(self) -> bool:
        """Whether batches take little time, apart from the GPU's work."""
        return not self.producer.is_away and min(self._took) < SCHEDULING.brief_ns

    def state(self, iteration: int) -> State:
        states = [self.plan.source_op(n).saved() for n in self.plan.sources]
        return State(iteration, self.position, self.ended, states)

    def _pick(self, ticket: Ticket) -> Context:
        if ticket.before is None:
            ticket.before = [op.state() for _, op in self._sources]
            ticket.position, ticket.ended = self.position, self.ended
        self.position = ticket.position  # also for a ticket whose thread was interrupted
        if self.ended:
            raise StopIteration
        n = ticket.batch_size
        epoch = position = None
        decided = ""  # name of the source that determined the batch size
        for node, op in self._sources:
            begin = time.monotonic_ns()
            try:
                picks = op.take(n, ticket.index)
            except StopIteration:
                self.ended = True
                raise
            except (DataError, WorkerError) as e:
                raise of_source(e, node.describe(str(e))) from e.__cause__
            except (OSError, ValueError) as e:
                if op.sets_batch_size:  # exceptions of user code are not changed
                    raise
                raise explain_failure(Context(0, np.zeros(0), np.zeros(0), ticket.index), node, e) from None
            if op.sets_batch_size:
                if decided and len(picks) != n:
                    raise PipelineError(node.describe(different_sizes(len(picks), decided, n)))
                n, decided = len(picks), node.name
                self.statistics.sourced(node.number, time.monotonic_ns() - begin, False)
            ticket.picks[node.number] = picks
            if epoch is None and "position" in picks.columns:
                epoch, position = picks.columns["epoch"], picks.columns["position"]
        if position is None or epoch is None:
            epoch, position = allocate(n, _UINT32)[0], indices(n) + self.position
        self.position += n
        self.policy.requested(ticket.index, self.position)
        return Context(n, epoch, position, ticket.index)

    def run(self, ticket: Ticket) -> None:
        """Makes a batch that is loaded. If the GPU must be waited for, `settle` completes it."""
        context = ticket.context
        assert context is not None
        begin = time.monotonic_ns()
        try:
            if context.values or not self.plan.sources:
                ticket.started = self.producer.start(context)
                self._took = (*self._took[1 - SCHEDULING.batches_remembered :], time.monotonic_ns() - begin)
                if context.gpu is not None and ticket.started is not None:
                    return
            self._complete(ticket, context)
        finally:
            if self.plan.iteration_order is not None:
                self.plan.iteration_order.leave(ticket.index)

    def settle(self, ticket: Ticket) -> None:
        """Waits for the GPU, and completes the batch."""
        assert ticket.context is not None
        self._complete(ticket, ticket.context)

    def _complete(self, ticket: Ticket, context: Context) -> None:
        started, ticket.started = ticket.started, None
        ticket.hand_out(*self.producer.produce(context, ticket.picks, 0, started))

    def end(self) -> None:
        """Wakes waiting threads, as the pipeline is closing."""
        self.producer.stop_waiting()
        for node in self.plan.sources:
            self.plan.source_op(node).stop_waiting()

    def go_back(self, ticket: Ticket) -> None:
        """Returns to the state before a ticket's samples were picked. Nothing may run concurrently."""
        if ticket.before is None:
            return
        self.position, self.ended = ticket.position, ticket.ended
        for node, state in zip(self.plan.sources, ticket.before):
            if state is not None:
                self.plan.source_op(node).restore(state)
