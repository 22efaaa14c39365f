# SPDX-License-Identifier: Apache-2.0
"""The threads of an executor. While idle they refer only to their queues, so that an unused pipeline can be garbage
collected although its threads wait for work, even if its callbacks refer to it."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.clocks import clocks
from ...core.errors import InternalError, PipelineError
from ...core.picks import Picks
from ..context import Context
from .checkpoint import State
from .constants import SCHEDULING
from .shared_core import SharedCore

if TYPE_CHECKING:
    from .production import Production

_PACKAGE = __name__.partition(".")[0] + "."


class Ticket:
    """One requested iteration."""

    __slots__ = (
        *("_made", "after", "ahead", "batch_size", "before", "closed", "context", "dropped", "ended", "error"),
        *("index", "is_brief", "is_made", "outputs", "picks", "position", "rows", "started"),
    )

    def __init__(self, index: int, batch_size: int, ahead: bool = False):
        self.index, self.batch_size = index, batch_size
        self.ahead = ahead  # requested ahead; may be withdrawn
        self.before: list[Any] | None = None  # states of the sources before its samples were picked
        self.after: State | None = None  # state of the pipeline after its samples were picked
        self.position, self.ended = 0, False  # before its samples were picked
        self.context: Context | None = None
        self.picks: dict[int, Picks] = {}
        self.outputs: list[Batch] | None = None
        self.rows: np.ndarray | None = None  # which samples of the iteration are in the outputs
        self.error: BaseException | None = None
        self.dropped = False  # cancelled; nobody will take it
        self.closed = False  # the pipeline was closed before it was made
        self.is_brief = False  # the previous batches took little time
        self.started: list[Batch] | None = None  # the outputs, if the GPU must be waited for
        self.is_made = False
        self._made = threading.Lock()  # held until done
        self._made.acquire()

    @property
    def parts(self) -> Sequence[Ticket]:
        """The iterations it consists of, in order."""
        return (self,)

    @property
    def is_dropped(self) -> bool:
        return self.dropped

    def join(self) -> None:
        """Merges its parts, once they are picked."""

    def hand_out(self, outputs: list[Batch], rows: np.ndarray) -> None:
        """Stores the outputs. `rows`: which samples of the iteration they have."""
        self.outputs, self.rows = outputs, rows

    def finish(self) -> None:
        """Marks the ticket as done, with or without an error; call once."""
        self.is_made = True
        self._made.release()

    def wait(self, seconds: float) -> bool:
        """Waits until it is done or the time has passed; returns whether it is done."""
        if self.is_made:  # not the lock alone: an interrupt between its two lines leaves it locked
            return True
        if not self._made.acquire(timeout=seconds):
            return False
        self._made.release()  # for other waiting threads
        return True

    def wait_for_most(self) -> None:
        """Waits until most of its data is loaded."""
        for loading in () if self.context is None else tuple(self.context.loading.values()):
            loading.wait_for_most()

    def fail(self, error: BaseException) -> None:
        """Stores an exception for the waiting thread."""
        self.error, self.context = error, None
        self.finish()


class _Busy(threading.local):
    """The pipelines that the thread is working for; several if user functions run other pipelines. Set it in a `try`
    that ends by restoring it: an interrupt can come between the methods of a context manager."""

    productions: tuple[Production, ...] = ()


BUSY = _Busy()


def check_not_busy(production: Production) -> None:
    """Raises RuntimeError in a thread that is working for the pipeline, as it would wait for itself forever."""
    if any(p is production for p in BUSY.productions):
        raise RuntimeError(
            "a pipeline can't be run or reset by its own functions and sources, as its batch waits for them"
        )


_Queue = queue.SimpleQueue  # contains tickets; None ends the thread
_LOOK_AGAIN = Ticket(-1, 0)  # not a batch: wakes the thread to check again


class Workers:
    """One thread that picks and loads, `n` that run loaded batches, and one that waits for the GPU."""

    def __init__(self, production: Production, n: int, loader_runs: bool, settles: bool):
        """`loader_runs`: the loading thread also runs brief batches. `settles`: batches wait for the GPU."""
        self._production, self.statistics = weakref.ref(production), production.statistics
        self._to_load: _Queue[Ticket | None] = _Queue()
        self.ask = self._to_load.put  # requests a batch; a built-in function, which no interrupt divides
        self._n, self._settles, self.loader_runs = n, settles, loader_runs
        self.loads_at_once = production.loads_at_once
        self._to_run: _Queue[Ticket | None] = _Queue()
        self._to_settle: _Queue[Ticket | None] = _Queue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._pid = 0
        self._core = SharedCore(production.can_share_a_core)
        self.stopping = self.exiting = False
        self._made_before = 0  # index of the first batch that is only read for now

    def start(self) -> None:
        """Starts the threads at the first call. Raises RuntimeError if they can't work any more."""
        if self._pid not in (0, os.getpid()):  # checked before taking a lock, which may have been held during the fork
            raise RuntimeError(
                "this process was forked from one in which the pipeline was running already, and its threads stayed "
                "there; build a pipeline in the child process, or fork before the first batch is asked for"
            )
        if self._threads and not self.stopping:
            return
        if self.stopping:
            self._refuse()
        with self._lock:
            if self._threads or self.stopping:
                return
            self._pid = os.getpid()
            threads = [self._thread("load", _load_loop, self._to_load, self._to_run, self._to_settle)]
            threads += [self._thread(f"batch{i}", _run_loop, self._to_run, self._to_settle) for i in range(self._n)]
            if self._settles:
                threads.append(self._thread("settle", _settle_loop, self._to_settle))
            for t in threads:
                t.start()
            self._threads = threads

    def _refuse(self) -> None:
        if self.exiting and threading.current_thread() is not threading.main_thread():
            threading.Event().wait()  # a daemon thread of the user at interpreter exit: block instead of raising
        raise RuntimeError("the pipeline is closed; build another one")

    def _thread(self, name: str, loop: Any, *queues: Any) -> threading.Thread:
        return threading.Thread(
            target=loop, args=(self, self._production, *queues), name=f"penstock-{name}", daemon=True
        )

    def make_up_to(self, index: int) -> None:
        """Sets which batches are due: those with a smaller index."""
        self._made_before = index

    def look_again(self) -> None:
        """Call when other batches may be due."""
        self._to_load.put(_LOOK_AGAIN)

    def is_due(self, ticket: Ticket) -> bool:
        """Whether a batch that is read is due to be made."""
        return ticket.index < self._made_before or ticket.is_dropped or self.stopping

    def ran(self, ticket: Ticket) -> None:
        """Reports the batch that the calling thread has run."""
        if ticket.is_brief:
            self._core.ran(self._threads)
        else:
            self._core.leave()

    def make(self, ticket: Ticket) -> None:
        """Makes a batch in the calling thread; it must not have been queued. After an interrupt, call `take_over`."""
        for task in ("load", "run"):
            if not _work(self, self._production, ticket, task, is_users=True):
                return
        ticket.finish()
        ticket.context = None

    def take_over(self, ticket: Ticket) -> None:
        """Lets the threads continue a batch that the calling thread has begun."""
        if ticket.context is None:
            self._to_load.put(ticket)
        else:
            ticket.context.start_again({})
            self._to_run.put(ticket)

    def wait(self, ticket: Ticket) -> None:
        """Waits until the ticket is done; RuntimeError if it never will be."""
        while not ticket.wait(0.5):
            self.start()  # raises an explanation if the threads are gone
            if not all(t.is_alive() for t in self._threads):
                raise InternalError("a thread of the pipeline has ended")
        if ticket.closed:
            self._refuse()

    def ask_to_stop(self, exiting: bool = False) -> None:
        """Drops batches in flight; the threads end after their current task."""
        with self._lock:
            if self.stopping:
                return
            self.exiting = exiting
            self.stopping = True
            production = self._production()
            if production is not None:
                production.end()
            self._to_load.put(None)
            for _ in range(self._n):
                self._to_run.put(None)
            self._to_settle.put(None)

    def stop(self, seconds: float = SCHEDULING.stop) -> None:
        """Asks to stop and waits for the threads, with a time limit: one may be in a callback that does not return."""
        self.ask_to_stop()
        if self._pid != os.getpid():
            return
        end = time.monotonic() + seconds
        for t in self._threads:
            if t is not threading.current_thread():
                t.join(max(0.0, end - time.monotonic()))
        self._threads = []  # another call need not wait again for one that does not end
        kernels.library().memory_trim(-1)  # trims the memory pool to its default level


def _load_loop(
    workers: Workers, production: weakref.ref[Production], todo: _Queue, loaded: _Queue, started: _Queue
) -> None:
    begun: deque[Ticket] = deque()  # loading batches, so that reads never wait for this thread
    ended = mostly_loaded = False  # mostly_loaded: of begun[0]
    since = clocks()
    while begun or not ended:
        while not ended and (
            not begun or not workers.is_due(begun[0]) or (len(begun) < workers.loads_at_once and not todo.empty())
        ):
            ticket = todo.get()
            ended = ticket is None
            if ticket is None or ticket is _LOOK_AGAIN:
                continue
            if workers.loads_at_once == 1 or _work(workers, production, ticket, "begin"):
                begun.append(ticket)
            ticket = None  # so that an idle thread keeps no batch alive
        if not begun:
            continue
        ticket = begun.popleft()
        if not (begun or mostly_loaded or ticket.is_dropped or workers.stopping or workers.loads_at_once == 1):
            ticket.wait_for_most()
            mostly_loaded = True
            begun.append(ticket)  # wait for the rest after starting the batches requested meanwhile
            continue
        mostly_loaded = False
        if _work(workers, production, ticket, "load"):
            if not ticket.is_brief or not workers.loader_runs:
                loaded.put(ticket)
            else:  # faster than handing it to another thread
                if _work(workers, production, ticket, "run"):
                    _hand_on(ticket, started)
                workers.ran(ticket)
        ticket = None
        workers.statistics.worked(since)


def _run_loop(workers: Workers, production: weakref.ref[Production], todo: _Queue, started: _Queue) -> None:
    since = clocks()
    while (ticket := todo.get()) is not None:
        if _work(workers, production, ticket, "run"):
            _hand_on(ticket, started)
        workers.ran(ticket)
        ticket = None
        workers.statistics.worked(since)


def _settle_loop(workers: Workers, production: weakref.ref[Production], todo: _Queue) -> None:
    since = clocks()
    while (ticket := todo.get()) is not None:
        if _work(workers, production, ticket, "settle"):
            _hand_on(ticket, todo)
        ticket = None
        workers.statistics.worked(since)


def _hand_on(ticket: Ticket, started: _Queue) -> None:
    """Finishes a ticket after a successful task, or hands it on if the GPU must be waited for."""
    if ticket.started is not None:
        started.put(ticket)
    else:
        ticket.context = None
        ticket.finish()


def _work(
    workers: Workers, reference: weakref.ref[Production], ticket: Ticket, task: str, is_users: bool = False
) -> bool:
    """Runs a task of the production for a ticket; returns whether it succeeded. In the user's threads, interrupts are
    raised, as they are not related to the batch."""
    production = reference()
    if ticket.is_dropped or workers.stopping or production is None:
        ticket.closed, ticket.context = workers.stopping, None
        ticket.finish()
        return False
    others = BUSY.productions
    try:
        try:
            BUSY.productions = (*others, production)
            getattr(production, task)(ticket)
        finally:
            BUSY.productions = others
    except BaseException as e:  # passed to the thread that waits for the batch
        if is_users and not isinstance(e, Exception):
            raise
        if isinstance(e, PipelineError) and e.__cause__ is None:  # its text explains it
            e.__context__ = e.__traceback__ = None
        _forget(e)
        if len(ticket.parts) > 1:
            _make_apart(workers, reference, ticket)
        else:
            ticket.fail(e)
        ticket = production = None  # type: ignore[assignment]  # the traceback refers to this frame, too
        return False
    return True


def _make_apart(workers: Workers, reference: weakref.ref[Production], ticket: Ticket) -> None:
    """Makes each part of a failed merged batch by itself, so that only bad parts fail."""
    for part in ticket.parts:
        if _work(workers, reference, part, "load") and _work(workers, reference, part, "run"):
            if part.started is None or _work(workers, reference, part, "settle"):
                part.context = None
                part.finish()


def _forget(error: BaseException) -> None:
    """Clears the local variables of our functions in an error's traceback, which refer to the batch and the pipeline.
    Frames of user functions are kept for debuggers."""
    todo, seen = [error], set()
    while todo:
        e = todo.pop()
        seen.add(id(e))
        todo += [other for other in (e.__cause__, e.__context__) if other is not None and id(other) not in seen]
        trace = e.__traceback__
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__", "").startswith(_PACKAGE):
                with contextlib.suppress(RuntimeError):  # frames that are still executing
                    trace.tb_frame.clear()
            trace = trace.tb_next
