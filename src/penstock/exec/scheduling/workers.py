# SPDX-License-Identifier: Apache-2.0
"""The threads of an executor. While idle they refer to nothing but their queues: a pipeline that nobody uses any more
can be collected although its threads wait for work, even if its callbacks refer to it."""

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
    """One iteration on its way."""

    __slots__ = (
        *("_made", "after", "ahead", "batch_size", "before", "closed", "context", "dropped", "ended", "error"),
        *("index", "is_brief", "is_waiting", "outputs", "picks", "position", "rows", "started", "waits"),
    )

    def __init__(self, index: int, batch_size: int, ahead: bool = False):
        self.index, self.batch_size = index, batch_size
        self.ahead = ahead  # nobody has asked for it yet, and it may be withdrawn
        self.before: list[Any] | None = None  # the states of the sources before its samples were picked
        self.after: State | None = None  # where the pipeline is once its samples are picked
        self.position, self.ended = 0, False  # likewise
        self.context: Context | None = None
        self.picks: dict[int, Picks] = {}
        self.outputs: list[Batch] | None = None
        self.rows: np.ndarray | None = None  # which samples of the iteration the outputs have
        self.error: BaseException | None = None
        self.dropped = False  # nobody will take it
        self.closed = False  # the pipeline was closed before it was made
        self.is_brief = False  # those before took little time
        self.started: Any = None  # what was begun of it, if the GPU has to be waited for
        self.waits = False  # it has
        self.is_waiting = False  # for whoever wants it to make it: no thread was asked for it yet
        self._made = threading.Lock()  # until it is done
        self._made.acquire()

    @property
    def parts(self) -> Sequence[Ticket]:
        """The iterations that it stands for, in order."""
        return (self,)

    @property
    def is_dropped(self) -> bool:
        return self.dropped

    def join(self) -> None:
        """Once its parts are picked: brings them together."""

    def hand_out(self, outputs: list[Batch], rows: np.ndarray) -> None:
        """Takes what was made of it. `rows`: which samples of the iteration the outputs have."""
        self.outputs, self.rows = outputs, rows

    def finish(self) -> None:
        """Says that it is done, whatever came of it; once."""
        self._made.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is done within some time."""
        if not self._made.acquire(timeout=seconds):
            return False
        self._made.release()  # for whoever else waits
        return True

    def wait_for_most(self) -> None:
        """Until most of what was begun is loaded."""
        for loading in () if self.context is None else tuple(self.context.loading.values()):
            loading.wait_for_most()

    def fail(self, error: BaseException) -> None:
        """Hands an exception to whoever waits for the batch."""
        self.error, self.context = error, None
        self.finish()


class _Busy(threading.local):
    """For which pipelines the thread is at work; more than one if their functions and sources run other pipelines."""

    def __init__(self) -> None:
        self.productions: list[Production] = []


_BUSY = _Busy()


class busy_with:
    """While the thread makes a batch of the pipeline, or what belongs to one. Keeps no exception alive, as a generator
    would."""

    def __init__(self, production: Production):
        _BUSY.productions.append(production)

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None:
        _BUSY.productions.pop()


def check_not_busy(production: Production) -> None:
    """RuntimeError in a thread that is at work for the pipeline: it would wait for itself for ever."""
    if any(p is production for p in _BUSY.productions):
        raise RuntimeError(
            "a pipeline can't be run or reset by its own functions and sources, as its batch waits for them"
        )


_Queue = queue.SimpleQueue  # of tickets; None ends the thread
_LOOK_AGAIN = Ticket(-1, 0)  # no batch: something has changed


class Workers:
    """A thread that picks and loads, `n` that run what is loaded, and one that waits for the GPU."""

    def __init__(self, production: Production, n: int, loader_runs: bool):
        """`loader_runs`: the thread that loads also runs those batches that take little time."""
        self._production = weakref.ref(production)
        self._to_load: _Queue[Ticket | None] = _Queue()
        self._n, self.loader_runs, self.loads_at_once = n, loader_runs, production.loads_at_once
        self._to_run: _Queue[Ticket | None] = _Queue()
        self._to_settle: _Queue[Ticket | None] = _Queue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._pid = 0
        self._core = SharedCore(production.can_share_a_core)
        self.stopping = self.exiting = False
        self._made_before = 0  # the number of the first batch that is only read for now

    def start(self) -> None:
        """Starts the threads, the first time. RuntimeError if they can't work any more."""
        if self._pid not in (0, os.getpid()):  # before any lock, which may have been held when the process was forked
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
            if not self.loader_runs:
                threads.append(self._thread("settle", _settle_loop, self._to_settle))
            for t in threads:
                t.start()
            self._threads = threads

    def _refuse(self) -> None:
        if self.exiting and threading.current_thread() is not threading.main_thread():
            threading.Event().wait()  # a daemon thread of the user's, which is about to vanish, has nothing to report
        raise RuntimeError("the pipeline is closed; build another one")

    def _thread(self, name: str, loop: Any, *queues: Any) -> threading.Thread:
        return threading.Thread(
            target=loop, args=(self, self._production, *queues), name=f"penstock-{name}", daemon=True
        )

    def ask(self, ticket: Ticket) -> None:
        self._to_load.put(ticket)

    def make_up_to(self, index: int) -> None:
        """Which batches are to be made from now on: those before this one."""
        self._made_before = index

    def look_again(self) -> None:
        """To be called where other batches may be due."""
        self._to_load.put(_LOOK_AGAIN)

    def is_due(self, ticket: Ticket) -> bool:
        """Whether a batch that is read is to be made."""
        return ticket.index < self._made_before or ticket.is_dropped or self.stopping

    def ran(self, ticket: Ticket) -> None:
        """Tells what the calling thread has run."""
        if ticket.is_brief:
            self._core.ran(self._threads)
        else:
            self._core.leave()

    def make(self, ticket: Ticket) -> None:
        """Makes a batch in this thread, of which none was asked for it."""
        ticket.is_waiting = False
        try:
            for task in ("load", "run"):
                if not _work(self, self._production, ticket, task, is_users=True):
                    return
        except BaseException:  # the user's interrupt: the pipeline's threads do what is left to do
            if ticket.context is None:
                self._to_load.put(ticket)
            else:
                ticket.context.start_again({})
                self._to_run.put(ticket)
            raise
        ticket.context = None
        ticket.finish()

    def wait(self, ticket: Ticket) -> None:
        """Until the ticket is done; RuntimeError if it never will be."""
        while not ticket.wait(0.5):
            self.start()  # raises what there is to say if the threads are gone
            if not all(t.is_alive() for t in self._threads):
                raise InternalError("a thread of the pipeline has ended")
        if ticket.closed:
            self._refuse()

    def ask_to_stop(self, exiting: bool = False) -> None:
        """What is on its way is dropped; the threads end when they are through with what they are doing."""
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
        """Asks to stop and waits for the threads, but not for ever: one may be in a callback that does not return."""
        self.ask_to_stop()
        if self._pid != os.getpid():
            return
        end = time.monotonic() + seconds
        for t in self._threads:
            if t is not threading.current_thread():
                t.join(max(0.0, end - time.monotonic()))
        kernels.library().memory_trim(-1)  # keeps what it does in any case


def _load_loop(
    workers: Workers, production: weakref.ref[Production], todo: _Queue, loaded: _Queue, started: _Queue
) -> None:
    begun: deque[Ticket] = deque()  # so that what reads never waits for us
    ended = mostly_loaded = False  # the latter of the first that was begun
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
            ticket = None  # an idle thread keeps no batch alive
        if not begun:
            continue
        ticket = begun.popleft()
        if not (begun or mostly_loaded or ticket.is_dropped or workers.stopping or workers.loads_at_once == 1):
            ticket.wait_for_most()
            mostly_loaded = True
            begun.append(ticket)  # it is waited for when those have begun that were asked for meanwhile
            continue
        mostly_loaded = False
        if _work(workers, production, ticket, "load"):
            if not ticket.is_brief or not workers.loader_runs:
                loaded.put(ticket)
            elif _work(workers, production, ticket, "run"):  # sooner done than handed to another thread
                _hand_on(ticket, started)
        ticket = None


def _run_loop(workers: Workers, production: weakref.ref[Production], todo: _Queue, started: _Queue) -> None:
    while (ticket := todo.get()) is not None:
        if _work(workers, production, ticket, "run"):
            _hand_on(ticket, started)
        workers.ran(ticket)
        ticket = None


def _settle_loop(workers: Workers, production: weakref.ref[Production], todo: _Queue) -> None:
    while (ticket := todo.get()) is not None:
        if _work(workers, production, ticket, "settle"):
            _hand_on(ticket, todo)
        ticket = None


def _hand_on(ticket: Ticket, started: _Queue) -> None:
    """What was done without a fault is done, unless the GPU has to be waited for."""
    if ticket.waits:
        started.put(ticket)
    else:
        ticket.context = None
        ticket.finish()


def _work(
    workers: Workers, reference: weakref.ref[Production], ticket: Ticket, task: str, is_users: bool = False
) -> bool:
    """Does a task of the production for a ticket; says whether it succeeded. In a thread of the user's interrupts are
    raised, as they have nothing to do with the batch."""
    production = reference()
    if ticket.is_dropped or workers.stopping or production is None:
        ticket.closed, ticket.context = workers.stopping, None
        ticket.finish()
        return False
    try:
        with busy_with(production):
            getattr(production, task)(ticket)
    except BaseException as e:  # handed to whoever waits for the batch
        if is_users and not isinstance(e, Exception):
            raise
        if isinstance(e, PipelineError) and e.__cause__ is None:  # it explains itself
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
    """Makes each of several batches that can't be made as one by itself: only what is bad of them fails."""
    for part in ticket.parts:
        if _work(workers, reference, part, "load") and _work(workers, reference, part, "run"):
            if not part.waits or _work(workers, reference, part, "settle"):
                part.context = None
                part.finish()


def _forget(error: BaseException) -> None:
    """Lets go of what the variables of our functions held when it went wrong: the batch that the error is handed on
    with, and all of the pipeline. Those of the user's functions stay as they are, for debuggers."""
    todo, seen = [error], set()
    while todo:
        e = todo.pop()
        seen.add(id(e))
        todo += [other for other in (e.__cause__, e.__context__) if other is not None and id(other) not in seen]
        trace = e.__traceback__
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__", "").startswith(_PACKAGE):
                with contextlib.suppress(RuntimeError):  # the one that is at work
                    trace.tb_frame.clear()
            trace = trace.tb_next
