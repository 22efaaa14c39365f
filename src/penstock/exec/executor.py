# SPDX-License-Identifier: Apache-2.0
"""Keeps batches coming: picks in order, loads ahead, runs two batches at a time on one native pool, hands them out in
order."""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.op import Picks
from .context import BadSamples, Context
from .plan import Plan
from .policy import Policy, Producer
from .statistics import Statistics

# While one batch keeps the native threads busy the next is planned, so they never wait for Python.
_IN_FLIGHT = 2
_MAX_IO_THREADS = 4


class Ticket:
    """One iteration on its way."""

    __slots__ = ("batch_size", "context", "done", "error", "index", "outputs", "picks", "rows", "states")

    def __init__(self, index: int, batch_size: int):
        self.index, self.batch_size = index, batch_size
        self.context: Context | None = None
        self.picks: dict[int, Picks] = {}
        self.outputs: list[Batch] | None = None
        self.rows: np.ndarray | None = None
        self.states: list = []  # of the sources, behind this batch
        self.error: BaseException | None = None
        self.done = threading.Event()


class Executor:
    """Runs a plan in the background. `schedule` asks for a batch, `share` waits for the oldest one asked for."""

    def __init__(self, plan: Plan, num_threads: int, policy: Policy, statistics: Statistics):
        self.plan, self.statistics = plan, statistics
        self._tickets: deque[Ticket] = deque()
        self._state = _State(plan, num_threads, policy, statistics)
        self._states = [plan.source_op(n).state() for n in plan.sources]
        self._next = 0
        self.rows: np.ndarray | None = None  # which samples of its iteration the last batch has
        self._threads: list[threading.Thread] = []
        self.close = weakref.finalize(self, _State.stop, self._state)

    def schedule(self, batch_size: int) -> None:
        """Asks for the next batch. Blocks never."""
        self._state.ensure_threads()
        for node in self.plan.sources:
            self.plan.source_op(node).ask()
        ticket = Ticket(self._next, batch_size)
        self._next += 1
        self._tickets.append(ticket)
        self._state.to_load.put(ticket)

    def began(self) -> None:
        """The sources have been brought to the beginning of an epoch."""
        self._states = [self.plan.source_op(n).state() for n in self.plan.sources]

    @property
    def ended(self) -> bool:
        """Whether a source came to its end, so that nothing is produced before `drain`."""
        return self._state.ended

    @property
    def pending(self) -> int:
        return len(self._tickets)

    def share(self) -> list[Batch]:
        """The oldest batch asked for. Raises what went wrong with it; the next one is not affected."""
        if not self._tickets:
            raise RuntimeError("no batch was scheduled; call schedule_run() first")
        ticket = self._tickets.popleft()
        with self.statistics.waiting():
            while not ticket.done.wait(1.0):
                self._state.check_alive()
        self._states = ticket.states or self._states
        if ticket.error is not None:
            raise ticket.error
        assert ticket.outputs is not None
        self.rows = ticket.rows
        return ticket.outputs

    def drain(self) -> None:
        """Waits for what was asked for and drops it; the sources go back behind the last batch that was taken."""
        while self._tickets:
            self._tickets.popleft().done.wait()
        for node, state in zip(self.plan.sources, self._states):
            if state is not None:
                self.plan.source_op(node).restore(state)
        self._state.ended = False


class _State:
    """What the threads share. They hold no reference to the executor, so that it can be collected while they wait."""

    def __init__(self, plan: Plan, num_threads: int, policy: Policy, statistics: Statistics):
        self.plan, self.policy, self.statistics = plan, policy, statistics
        self.to_load: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self.to_run: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self.pool = kernels.Pool(num_threads)
        self.io = kernels.Pool(min(num_threads, _MAX_IO_THREADS))
        self.producer = Producer(plan, policy, self.pool, self.io, statistics.record)
        self.position = 0
        self.ended = False  # a source has come to its end; no more is taken from any until the next epoch begins
        self.threads: list[threading.Thread] = []
        self.lock = threading.Lock()
        _LIVE.add(self)

    def ensure_threads(self) -> None:
        if self.threads:
            return
        with self.lock:
            if self.threads:
                return
            work = [(self._load_loop, "load")] + [(self._run_loop, f"batch{i}") for i in range(_IN_FLIGHT)]
            threads = [threading.Thread(target=f, name=f"penstock-{name}", daemon=True) for f, name in work]
            for t in threads:
                t.start()
            self.threads = threads

    def check_alive(self) -> None:
        if self.threads and not all(t.is_alive() for t in self.threads):
            raise RuntimeError("[internal error] a thread of the pipeline has ended")

    def _load_loop(self) -> None:
        """Takes picks in order, so that what an iteration sees depends on nothing but those before it."""
        while (ticket := self.to_load.get()) is not None:
            try:
                self._pick(ticket)
                context = ticket.context
                assert context is not None
                try:
                    self.producer.load(context, ticket.picks)
                except BadSamples:
                    context.values.clear()  # the batch thread loads again and applies the policy
            except BaseException as e:  # handed to whoever waits for the batch
                ticket.error = e
                ticket.done.set()
                continue
            self.to_run.put(ticket)

    def _pick(self, ticket: Ticket) -> None:
        n = ticket.batch_size
        if self.ended:
            raise StopIteration
        epoch = position = None
        for node in self.plan.sources:
            op = self.plan.source_op(node)
            try:
                picks = op.take(n, ticket.index)
            except StopIteration:
                self.ended = True
                raise
            n = len(picks) if op.sets_batch_size else n
            ticket.picks[node.number] = picks
            if epoch is None and "position" in picks.columns:
                epoch, position = picks.epoch, picks.position
        if position is None or epoch is None:
            epoch, position = np.zeros(n, "u4"), np.arange(self.position, self.position + n)
        ticket.states = [self.plan.source_op(node).state() for node in self.plan.sources]
        self.position += n
        self.policy.seen += n
        ticket.context = Context(n, epoch, position, ticket.index)

    def _run_loop(self) -> None:
        while (ticket := self.to_run.get()) is not None:
            try:
                assert ticket.context is not None
                ticket.outputs, ticket.rows = self.producer.produce(ticket.context, ticket.picks)
            except BaseException as e:  # handed to whoever waits for the batch
                ticket.error = e
            ticket.context = None
            ticket.done.set()

    def stop(self) -> None:
        for node in self.plan.sources:
            self.plan.source_op(node).closing = True
        self.to_load.put(None)
        for _ in range(_IN_FLIGHT):
            self.to_run.put(None)
        for t in self.threads:
            if t is not threading.current_thread():
                t.join()
        self.threads = []
        for node in self.plan.sources:
            self.plan.source_op(node).close()
        self.pool.close()
        self.io.close()


_LIVE: weakref.WeakSet[_State] = weakref.WeakSet()
