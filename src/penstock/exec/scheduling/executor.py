# SPDX-License-Identifier: Apache-2.0
"""Runs batches in the background: picks in order, loads ahead, runs two batches at a time on one native pool, returns
them in order."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable

import numpy as np

from ...core.batch import Batch
from ...core.source import Source
from ...core.weak_set import WeakSet
from ..plan import Plan
from ..ranges import in_range
from .called import CalledSources
from .checkpoint import State
from .constants import SCHEDULING
from .merging import MergedTicket, Merging
from .policy import Policy
from .producer import Producer
from .production import Production
from .statistics import Statistics
from .workers import Ticket, Workers, check_not_busy


class Executor:
    """Runs a plan in the background. `schedule` requests a batch, `share` waits for the oldest requested one. If data
    is read further ahead than batches are made, only the first `depth` batches are made, and the others only read."""

    def __init__(self, plan: Plan, producer: Producer, policy: Policy, statistics: Statistics):
        self.plan, self.statistics = plan, statistics
        self._tickets: deque[Ticket] = deque()
        self._production = Production(plan, producer, policy, statistics)
        self.set_threads = self._production.producer.set_threads
        n = SCHEDULING.in_flight
        if plan.session is not None:
            n = plan.session.at_once if plan.waits else SCHEDULING.in_flight_on_gpu
        loader_runs = not (plan.waits or plan.decodes_on_gpu)
        self._workers = Workers(self._production, n, loader_runs, settles=plan.session is not None)
        self._next = 0
        self.depth = 1
        # Number of batches that are read before they are due. Workers make all batches that are requested.
        self.reads_ahead = 0 if producer.is_away else plan.batches_read_ahead
        self.merging = Merging(plan, producer.is_away)
        self._ahead = 0  # number of tickets requested ahead and not needed yet; guarded by `_sharing`
        # Index of the first ticket that is not given to the threads yet: `share` makes it itself, or there are too few
        # to be merged. An interrupt may end each call of a function, but comes nowhere else: nothing is called between
        # the lines that change this and those that give the tickets to the threads.
        self._first_held = 0
        self._seen: State | None = None  # after the last batch returned; None if nothing is in flight
        self.rows: np.ndarray | None = None  # which samples of its iteration are in the last batch
        self._left_ns = 0  # when the last batch was returned
        self._tight_loops = 0  # number of consecutive batches requested soon after the previous one
        self._sharing = threading.Lock()
        self._sources = [plan.source_op(n) for n in plan.sources]
        self._called = CalledSources(plan, statistics)
        self._may_end = any(isinstance(n.op, Source) and n.op.may_end for n in plan.nodes)
        # Feeds that can't go back, so iterations are requested ahead only while they repeat data; empty if withdrawing
        # an iteration would have side effects.
        self._repeating = [op.feeding for op in self._sources if op.state() is None]
        if plan.iteration_order is not None or policy.on_error != "raise" or None in self._repeating:
            self._repeating = []
        # The workers do not refer to the plan, so this keeps nothing of it alive.
        weakref.finalize(self, Workers.stop, self._workers).atexit = False
        _LIVE.add(self._workers)

    def check_not_busy(self) -> None:
        """Raises RuntimeError in a thread that is making a batch of this pipeline."""
        check_not_busy(self._production)

    def schedule(self, batch_size: int, ahead: bool = False, at_once: bool = False) -> None:
        """Requests the next batch, without blocking. `ahead`: nobody needs it yet, and `withdraw` may undo it.
        `at_once`: if batches take little time, `share` makes it itself, as waking other threads would take longer."""
        self._workers.start()
        if not ahead:
            self.withdraw()
        with self._sharing:
            if self._seen is None and self._production.keeps_state:
                self._seen = self._production.state(self._next)
            for op in self._sources:
                op.ask()
            ticket = Ticket(self._next, batch_size, ahead)
            makes_at_once = at_once and not self._tickets and self._makes_at_once()
            if self._tickets and not makes_at_once:
                self._begin(self._tickets[0])
            self._workers.make_up_to(self._first_that_is_only_read(self._tickets[0] if self._tickets else ticket))
            self._next += 1
            self._ahead += ahead
            self._tickets.append(ticket)
            if not makes_at_once and self._next - self._first_held >= self.merging.size:
                self._ask_held()

    def call_sources(self, batch_size: int, iter_setup: Callable[[], None] | None) -> bool:
        """Calls the sources that run in the consumer's thread, up to one that ends, and, if none has, `iter_setup`;
        returns whether none has."""
        follows = self._called.call(self._production, batch_size, self._next)
        if follows and iter_setup is not None:
            iter_setup()
        return follows

    def has_data(self) -> bool:
        """Whether a batch can be requested without waiting for fed data."""
        return all(op.has_data() for op in self._sources)

    def schedule_ahead(self, batch_size: int, depth: int) -> None:
        """Requests another batch if there is data; or, if the last fed data is likely to be repeated, batches up to the
        depth. In any case, the batches that have become due are made."""
        before = self._next
        if self.has_data():
            if self.pending < depth:
                self.schedule(batch_size)
        elif self._repeating and not self._makes_at_once():
            while self.pending < depth and all(feed.repeats for feed in self._repeating):
                self.schedule(batch_size, ahead=True)
        if self._next == before:
            self.make_due()

    def make_due(self) -> None:
        """Call after `share`, unless another batch is requested right after: makes the batches that have become due."""
        if self.reads_ahead:
            self._workers.look_again()

    def consumer_is_polling(self) -> bool:
        """Call when a batch is requested: returns whether the next batches should be made on request."""
        soon = time.monotonic_ns() - self._left_ns < SCHEDULING.tight_loop_ns
        self._tight_loops = self._tight_loops + 1 if soon else 0
        return self._tight_loops >= SCHEDULING.tight_loops and self._makes_at_once()

    def withdraw(self) -> None:
        """Cancels batches requested ahead, as new data arrives."""
        if not self._ahead:
            return
        with self._sharing:
            dropped = [t for t in self._tickets if t.ahead]
            if dropped:
                self._drop(dropped)
                self._tickets, self._ahead = deque(t for t in self._tickets if not t.ahead), 0
                for feed in self._repeating:
                    feed.take_back_asked()  # earlier requests were taken, as they come first
                if not self._tickets:
                    self._seen = None

    def _drop(self, tickets: list[Ticket]) -> None:
        """Drops the last tickets and waits until no thread works on them. Sources that can go back return to the state
        before them."""
        for ticket in tickets:
            ticket.dropped = True
        self._workers.look_again()
        for ticket in tickets:
            self._begin(ticket)
            self._workers.wait(ticket)
        self._next = self._first_held = tickets[0].index
        self._production.go_back(tickets[0])

    @property
    def pending(self) -> int:
        return len(self._tickets)

    def ends_next(self) -> bool:
        """Whether the oldest requested batch is the end of a source that the consumer's thread does not call; waits for
        the batch if there is such a source."""
        if not self._may_end:
            return False
        with self._sharing:
            if not self._tickets:
                return False
            self._begin(self._tickets[0])
            self._workers.wait(self._tickets[0])
            return isinstance(self._tickets[0].error, StopIteration)

    def share(self) -> list[Batch]:
        """Returns the oldest requested batch. Raises its error, if any; later batches are not affected. After a batch,
        call `schedule`, `schedule_ahead` or `make_due`."""
        self._workers.start()
        with self._sharing:
            if not self._tickets:
                raise StopIteration("no batch was scheduled; call schedule_run() first")  # as in DALI
            # Removed from the queue only when done, so that an interrupted wait loses nothing.
            ticket = self._tickets[0]
            begin = time.monotonic_ns()
            with in_range("wait for a batch"):
                if self.plan.is_prompt and self._is_held(ticket) and not ticket.is_made:
                    self._make(ticket)
                else:
                    self._begin(ticket)
                self._workers.wait(ticket)
            waited = time.monotonic_ns() - begin
            self.statistics.waited(waited)
            self.merging.waited(waited, ticket.batch_size)
            if len(self._tickets) > 1:
                self._workers.make_up_to(self._first_that_is_only_read(self._tickets[1]))
            del self._tickets[0]
            self._ahead -= ticket.ahead
            self._seen = ticket.after or self._seen
        if ticket.error is not None:
            self.make_due()
            try:
                raise ticket.error
            finally:
                ticket.error = None  # it refers to this frame, which refers to the ticket
        assert ticket.outputs is not None
        self.rows = ticket.rows
        self._left_ns = time.monotonic_ns()
        return ticket.outputs

    def _first_that_is_only_read(self, oldest: Ticket) -> int:
        """The index of the first batch that is not due to be made yet, if `oldest` is the oldest requested one."""
        if not self.reads_ahead:
            return self._next + 1
        return oldest.index + self.depth + self.plan.ahead

    def _makes_at_once(self) -> bool:
        return self.plan.is_prompt and self._production.is_brief()

    def _begin(self, ticket: Ticket) -> None:
        if self._is_held(ticket) and not ticket.is_made:
            self._ask_held()

    def _is_held(self, ticket: Ticket) -> bool:
        return ticket.index >= self._first_held

    def _ask_held(self) -> None:
        tickets = [t for t in self._tickets if t.index >= self._first_held]
        ticket = MergedTicket(tickets) if len(tickets) > 1 else tickets[0]
        ask = self._workers.ask
        self._first_held = self._next
        ask(ticket)

    def _make(self, ticket: Ticket) -> None:
        """Makes a held batch in the calling thread."""
        try:
            self._workers.make(ticket)
        except BaseException:  # an interrupt of the user: the pipeline's threads continue the batch
            if not ticket.is_made:
                self._workers.take_over(ticket)
            raise
        finally:
            self._first_held = ticket.index + 1

    def drain(self) -> None:
        """Drops all requested batches. Sources that can go back return to the state before them."""
        self.withdraw()
        with self._sharing:
            if self._tickets:
                self._drop(list(self._tickets))
                self._tickets.clear()
                self._ahead = 0
            self._called.forget()
            self._production.ended = False
            if self.plan.iteration_order is not None:
                self.plan.iteration_order.clear()
            self._seen = None

    def keep_state(self) -> None:
        """Enables `state`; call before the first batch."""
        self._production.keeps_state = True
        for op in self._sources:
            op.keeps_state = True

    def state(self) -> State:
        """The state after the last batch returned, regardless of batches prepared ahead."""
        with self._sharing:
            state = self._seen or self._production.state(self._next)
            state.errors = self._production.policy.saved(state.iteration)
            return state

    def restore(self, state: State) -> None:
        """Continues from a checkpoint whose sources are restored; call before the first batch is requested."""
        self._next, self._production.position = state.iteration, state.position
        self._production.ended = state.ended
        self._production.policy.restore(state.errors)

    def reset(self) -> bool:
        """Moves the sources to the start of their next epoch, as seen from the last batch returned.
        Returns whether there was anything to do."""
        sources = self._sources
        ended = self._production.ended or self._called.ended
        if not ended and not any(op.restarts() for op in sources):
            return False
        if self._tickets:
            self._begin(self._tickets[0])
            self._workers.wait(self._tickets[0])
            states = self._tickets[0].before
        else:
            states = [s.state() for s in sources]
        if (
            not ended
            and states is not None
            and all(s is not None and op.begins_epoch(s) for op, s in zip(sources, states))
        ):
            return False
        self.drain()
        for op in sources:
            op.reset()
        return True

    def close(self) -> None:
        """Stops the threads and closes the sources. Afterwards nothing can be scheduled."""
        self._workers.stop()
        if self._sharing.acquire(blocking=False):  # otherwise a consumer is just being told that it is closed
            self._tickets.clear()  # and frees the memory of batches made ahead
            self._sharing.release()
        for node in self.plan.sources:
            self.plan.source_op(node).close()


_LIVE = WeakSet[Workers]()


@atexit.register
def _stop_all() -> None:
    """Stops all threads, so that a user callback that never returns does not block interpreter exit."""
    live = list(_LIVE)
    for workers in live:
        workers.ask_to_stop(exiting=True)
    for workers in live:
        workers.stop(SCHEDULING.stop_at_exit)
