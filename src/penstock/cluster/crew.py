# SPDX-License-Identifier: Apache-2.0
"""Which worker makes which batch: what is late or lost is asked of another one. How they are reached is a `Link`'s."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ..core.errors import PipelineError, WorkerError
from .order import Answer, Order

LATE_SECONDS = 2.0  # a batch is not late before
_LATE_TIMES = 8  # those that took longest lately
_FIRST_SECONDS = 60.0  # as long as nothing is known
_REMEMBERED = 32
_MOST_FAILURES = 5  # in a row, of a worker that is started again each time
_MOST_DEATHS = 5  # of workers that were at one batch
_STOP_SECONDS = 3.0
AT_ONCE = 2  # a worker makes, in order: while one batch keeps its native threads busy the next is planned


class Lost(Exception):
    """A worker is gone; the text says how."""


class Refused(Exception):
    """A worker that can't work for this pipeline, whatever is tried."""


class Link(Protocol):
    """The way to one worker. `open` and `receive` block; all but `hang_up` raise Lost."""

    name: str

    def open(self) -> None:
        """Starts the worker and waits until it is ready. Raises Refused, too."""

    def send(self, order: Order) -> None: ...

    def receive(self) -> tuple[Answer, Any]:
        """The next answer, in any order, with its batches or None."""

    def hang_up(self) -> None:
        """Makes the other methods raise Lost, in other threads, too. May be called at any time."""

    def end(self) -> None:
        """Waits for the worker to be gone, at most briefly, and lets go of everything."""


class Asked:
    """A batch that was asked for. Whoever lets go of it does not want it any more."""

    def __init__(self, crew: Crew, order: Order):
        self.order, self._crew = order, crew
        self.answer: Answer | None = None
        self.batches: Any = None
        self.worker = ""
        self.sent: dict[_Member, float] = {}  # who was asked, and when
        self.deaths = 0
        self.is_wanted = True


class _Member:
    """One place in the crew: a worker, and when it dies another."""

    def __init__(self, index: int):
        self.index = index
        self.link: Link | None = None
        self.asked: dict[int, Asked] = {}  # not answered yet
        self.state = "starting"  # then "ready", or "gone" for good
        self.is_late, self.late_since = False, 0.0
        self.failures = 0
        self.why = ""


class Crew:
    """`n` workers, each reached by what `link(index)` makes, and at most `depth` batches on their way to each."""

    def __init__(self, link: Callable[[int], Link], n: int, depth: int):
        self._make_link, self._depth = link, max(depth, 2)
        self.window = n * self._depth + 1
        self._changed = threading.Condition()
        self._todo: deque[Asked] = deque()
        self._number = 0
        self._took: deque[float] = deque(maxlen=_REMEMBERED)
        self._closing = self._warned = False
        self._pid = os.getpid()
        self.members = [_Member(i) for i in range(n)]
        self._threads: list[threading.Thread] = []
        for m in self.members:
            for what in (self._serve, self._feed):
                t = threading.Thread(target=what, args=(m,), name=f"penstock-crew{m.index}", daemon=True)
                self._threads.append(t)
                t.start()

    # For the trainer ----------------------------------------------------------------------------------------------

    def ask(self, n: int, epoch: Any, position: Any, iteration: int, picks: dict[int, Any]) -> Asked:
        """Asks for a batch, and does not wait."""
        with self._changed:
            self._number += 1
            asked = Asked(self, Order(self._number, n, epoch, position, iteration, picks))
            self._todo.append(asked)
            self._changed.notify_all()
            return asked

    def wait(self, asked: Asked) -> bool:
        """Waits for a batch. False: there is nobody to make it. Raises WorkerError for one that kills its workers, and
        if no worker is able to work for this pipeline."""
        with self._changed:
            while asked.answer is None:
                if self._closing:
                    raise WorkerError("the pipeline is closed; build another one")
                if asked.deaths >= _MOST_DEATHS:
                    raise PipelineError(
                        f"{asked.deaths} workers died while they made the batch of iteration {asked.order.iteration}; "
                        f"the last one {self._last_words()}"
                    )
                if all(m.state == "gone" for m in self.members):
                    self._nobody()
                    return False
                if not self._look_for_late(asked):
                    self.forget(asked)
                    return False
                self._changed.wait(0.1)
            return True

    def forget(self, asked: Asked) -> None:
        """Nobody wants it any more."""
        with self._changed:
            asked.is_wanted = False
            if asked in self._todo:
                self._todo.remove(asked)

    def close(self) -> None:
        """Ends the workers."""
        if os.getpid() != self._pid:  # of a fork: the workers are the parent's
            return
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._todo.clear()
            self._changed.notify_all()
            links = [m.link for m in self.members if m.link is not None]
        for link in links:
            link.hang_up()
        end = time.monotonic() + _STOP_SECONDS
        for t in self._threads:
            if t is not threading.current_thread():
                t.join(max(0.0, end - time.monotonic()))

    # Loss and lateness, all with the lock held ----------------------------------------------------------------------

    def _limit(self) -> float:
        return max(LATE_SECONDS, _LATE_TIMES * max(self._took)) if self._took else _FIRST_SECONDS

    def _look_for_late(self, asked: Asked) -> bool:
        """Asks others for what a worker that is late with a batch has. False: there is no other one, and waiting longer
        would not help."""
        now, limit = time.monotonic(), self._limit()
        for m in self.members:
            if asked.order.number in m.asked and not m.is_late and now - asked.sent[m] > limit:
                m.is_late, m.late_since = True, now
                for a in m.asked.values():
                    self._again(a)
        ready = [m for m in self.members if m.state != "gone"]
        if asked in self._todo and all(m.is_late for m in ready):
            return now - max(m.late_since for m in ready) < limit
        return True

    def _again(self, asked: Asked) -> None:
        """Puts a batch before all others, unless it is not needed."""
        if asked.answer is None and asked.is_wanted and asked not in self._todo:
            self._todo.append(asked)
            self._todo = deque(sorted(self._todo, key=lambda a: a.order.number))
        self._changed.notify_all()

    def _nobody(self) -> None:
        """No worker is left: an error if they were never able to work, else a warning, once."""
        refused = next((m.why for m in self.members if m.failures < 0), "")
        if refused:
            raise WorkerError(refused)
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"no worker is left, so this process makes the batches itself from now on; the last one "
                f"{self._last_words()}",
                stacklevel=2,
            )

    def _last_words(self) -> str:
        return next((m.why for m in reversed(self.members) if m.why), "is gone")

    # Threads ------------------------------------------------------------------------------------------------------

    def _serve(self, m: _Member) -> None:
        """Keeps a worker running and takes what it answers."""
        while True:
            link = self._make_link(m.index)
            with self._changed:
                if self._closing:
                    return
                m.link = link
            try:
                link.open()
                with self._changed:
                    m.state, m.is_late = "ready", False
                    self._changed.notify_all()
                while True:
                    self._take(m, link.name, *link.receive())
            except Lost as e:
                more = self._lose(m, str(e))
            except Refused as e:
                more = False
                with self._changed:
                    m.state, m.why, m.failures = "gone", str(e), -1
                    self._changed.notify_all()
            link.hang_up()
            link.end()
            if not more:
                return
            if m.failures > 1:
                time.sleep(min(0.05 * 2**m.failures, 1.0))

    def _take(self, m: _Member, name: str, answer: Answer, batches: Any) -> None:
        with self._changed:
            m.failures, m.is_late = 0, False
            asked = m.asked.pop(answer.number, None)
            if asked is not None:
                self._took.append(time.monotonic() - asked.sent[m])
                if asked.answer is None and asked.is_wanted:  # else another one was quicker
                    asked.answer, asked.batches, asked.worker = answer, batches, name
                    if asked in self._todo:
                        self._todo.remove(asked)
            self._changed.notify_all()

    def _lose(self, m: _Member, why: str) -> bool:
        """Whether to start another one in its place."""
        with self._changed:
            m.why, m.link = why, None
            m.failures += 1
            asked, m.asked = list(m.asked.values()), {}
            m.state = "gone" if m.failures >= _MOST_FAILURES or self._closing else "starting"
            for i, a in enumerate(asked):
                a.deaths += i < AT_ONCE  # the others were not begun, so they are not what it died of
                self._again(a)
            self._changed.notify_all()
            return m.state == "starting"

    def _next_for(self, m: _Member) -> Asked | None:
        """What to hand to a worker now: nothing that it has already. With the lock held."""
        if self._closing or m.state != "ready" or m.is_late or len(m.asked) >= self._depth:
            return None
        return next((a for a in self._todo if a.order.number not in m.asked), None)

    def _feed(self, m: _Member) -> None:
        """Hands a worker what it has room for."""
        while True:
            with self._changed:
                while (asked := self._next_for(m)) is None:
                    if self._closing or m.state == "gone":
                        return
                    self._changed.wait()
                self._todo.remove(asked)
                asked.sent[m] = time.monotonic()
                m.asked[asked.order.number] = asked
                link = m.link
            try:
                assert link is not None
                link.send(asked.order)
            except Lost:
                pass  # the thread that receives hears of it, too
            asked = link = None  # an idle thread keeps no batch alive
