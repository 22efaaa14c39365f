# SPDX-License-Identifier: Apache-2.0
"""Assigns batches to workers; late or lost batches are requested from another worker. Each worker is reached by a
`WorkerLink`."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

from ..core.errors import PipelineError, WorkerError
from .autoscaling import PERIOD_SECONDS, Autoscaler
from .messages import Answer, Order
from .worker_link import WorkerLink, WorkerLost, WorkerRefused

LATE_SECONDS = 2.0  # minimum time before a batch is late
_LATE_TIMES = 8  # multiple of the longest recent time after which a batch is late
_FIRST_SECONDS = 60.0  # limit while no times are known
_REMEMBERED = 32
_MOST_FAILURES = 5  # consecutive failures after which a worker is not restarted
_MOST_DEATHS = 10  # deaths of workers during one batch: more than unrelated failures explain
_STOP_SECONDS = 3.0
_AGAIN_SECONDS = 30.0  # time until a worker that is gone is replaced
AT_WORK = ("starting", "ready")  # states of workers that take orders, now or soon
AT_ONCE = 2  # batches that a worker makes concurrently: one keeps its native threads busy while the next is planned
# One more batch is being read: between the end of a batch and the arrival of the next order, several threads must wake
# one after the other, which may take long if all CPUs are busy.
LEAST_DEPTH = AT_ONCE + 1


class PendingBatch:
    """A requested batch. Call `forget` if it is not needed any more."""

    def __init__(self, lock: threading.RLock, order: Order):
        self.order = order
        self.answer: Answer | None = None
        self.batches: Any = None
        self.worker = ""
        self.sent: dict[_Slot, float] = {}  # slots it was sent to, with the time
        self.deaths = 0
        self.is_wanted = True
        self.changed = threading.Condition(lock)  # signalled to the waiting thread


class _Slot:
    """A place for a worker, and for its successor when it dies."""

    def __init__(self, index: int, lock: threading.RLock):
        self.index = index
        self.changed = threading.Condition(lock)  # signalled to the thread that sends it batches
        self.link: WorkerLink | None = None
        self.asked: dict[int, PendingBatch] = {}  # not answered yet
        self.state = "starting"  # then "ready"; "leaving": ends after its last answer; or "gone"
        self.is_late, self.late_since = False, 0.0
        self.failures = 0  # negative: it can't work for this pipeline
        self.why = ""
        self.gone_since = 0.0
        self.busy, self._busy_since = 0.0, 0.0  # total busy seconds until it last became idle

    def busy_until(self, now: float) -> float:
        return self.busy + (now - self._busy_since if self.asked else 0.0)

    def put(self, asked: PendingBatch, now: float) -> None:
        if not self.asked:
            self._busy_since = now
        self.asked[asked.order.number] = asked

    def take(self, number: int, now: float) -> PendingBatch | None:
        if len(self.asked) == 1 and number in self.asked:
            self.busy = self.busy_until(now)
        return self.asked.pop(number, None)

    def take_all(self, now: float) -> list[PendingBatch]:
        self.busy = self.busy_until(now)
        asked, self.asked = list(self.asked.values()), {}
        return asked


class WorkerPool:
    """Workers, each reached by `link(index)`, with at most `depth` batches in flight each (at least LEAST_DEPTH).
    `scaling` chooses the number of workers. Workers that are permanently lost are replaced after a while."""

    def __init__(self, link: Callable[[int], WorkerLink], n: int, depth: int, scaling: Autoscaler):
        self._make_link, self._depth, self._scaling = link, max(depth, LEAST_DEPTH), scaling
        # Waiting threads are woken one by one, as each needless wake-up takes the GIL from working threads.
        self._lock = threading.RLock()
        self._todo: deque[PendingBatch] = deque()
        self._number = 0
        self._took: deque[float] = deque(maxlen=_REMEMBERED)
        self._closing = self._warned = False
        self._pid = os.getpid()
        self.slots: list[_Slot] = []
        self._busy_before = 0.0  # busy seconds of workers that have left
        self._threads: list[threading.Thread] = []
        self._waiting: list[PendingBatch] = []  # batches that a thread waits for
        self._end, self._wanted = threading.Event(), n
        with self._lock:
            self._resize(n)
            self._start_thread(self._scale)

    @property
    def size(self) -> int:
        """Number of workers, including those being started."""
        return sum(m.state in AT_WORK for m in self.slots)

    @property
    def window(self) -> int:
        """Number of batches to request at once, so that no worker waits for the trainer."""
        return self.size * self._depth + 1

    # For the trainer ----------------------------------------------------------------------------------------------

    def ask(self, n: int, epoch: Any, position: Any, iteration: int, picks: dict[int, Any]) -> PendingBatch:
        """Requests a batch, without waiting."""
        with self._lock:
            self._number += 1
            asked = PendingBatch(self._lock, Order(self._number, n, epoch, position, iteration, picks))
            self._todo.append(asked)
            self._hand_out()
            return asked

    def wait(self, asked: PendingBatch) -> bool:
        """Waits for a batch. Returns False if there is no worker to make it. Raises WorkerError if no worker can work
        for this pipeline, and PipelineError for a batch that kills its workers."""
        with self._lock:
            self._waiting.append(asked)
            try:
                return self._wait(asked)
            finally:
                self._waiting.remove(asked)

    def _wait(self, asked: PendingBatch) -> bool:
        while asked.answer is None:
            if self._closing:
                raise WorkerError("the pipeline is closed; build another one")
            nobody = not self.size and not any(asked.order.number in m.asked for m in self.slots)
            # A batch that kills one worker after the other would also kill this process.
            if asked.deaths >= (_MOST_FAILURES if nobody else _MOST_DEATHS):
                raise PipelineError(
                    f"{asked.deaths} workers died while they made the batch of iteration {asked.order.iteration}; "
                    f"the last one {self._last_words()}"
                )
            if nobody:
                self._nobody()
                return False
            if not self._look_for_late(asked):
                self.forget(asked)
                return False
            asked.changed.wait(0.1)
        return True

    def forget(self, asked: PendingBatch) -> None:
        """Cancels a batch."""
        with self._lock:
            asked.is_wanted = False
            if asked in self._todo:
                self._todo.remove(asked)

    def close(self) -> None:
        """Ends the workers."""
        if os.getpid() != self._pid:  # in a forked child: the workers belong to the parent
            return
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._end.set()
            self._todo.clear()
            self._tell_all()
            links = [m.link for m in self.slots if m.link is not None]
            threads = list(self._threads)
        for link in links:
            link.hang_up()
        end = time.monotonic() + _STOP_SECONDS
        for t in threads:
            if t is not threading.current_thread():
                t.join(max(0.0, end - time.monotonic()))

    # Lost and late batches; all methods require _lock --------------------------------------------------------------

    def _limit(self) -> float:
        return max(LATE_SECONDS, _LATE_TIMES * max(self._took)) if self._took else _FIRST_SECONDS

    def _look_for_late(self, asked: PendingBatch) -> bool:
        """Requests the batches of a late worker from others. Returns False if there is no other worker, and waiting
        longer would not help."""
        now, limit = time.monotonic(), self._limit()
        for m in self.slots:
            if asked.order.number in m.asked and not m.is_late and now - asked.sent[m] > limit:
                m.is_late, m.late_since = True, now
                for a in m.asked.values():
                    self._again(a)
        at_work = [m for m in self.slots if m.state in AT_WORK]
        if asked in self._todo and all(m.is_late for m in at_work):
            return now - max((m.late_since for m in at_work), default=0.0) < limit
        return True

    def _again(self, asked: PendingBatch) -> None:
        """Requeues a batch, in the order of requests, unless it is not needed."""
        if asked.answer is None and asked.is_wanted and asked not in self._todo:
            self._todo.append(asked)
            self._todo = deque(sorted(self._todo, key=lambda a: a.order.number))
        self._tell_all()

    def _nobody(self) -> None:
        """Handles that no worker is left: raises an error if none could ever work, otherwise warns once."""
        refused = next((m.why for m in self.slots if m.failures < 0), "")
        if refused:
            raise WorkerError(refused)
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"no worker is left, so this process makes the batches itself until one can be started; the last one "
                f"{self._last_words()}",
                stacklevel=2,
            )

    def _last_words(self) -> str:
        return next((m.why for m in reversed(self.slots) if m.why), "is gone")

    # Number of workers; all methods require _lock ------------------------------------------------------------------

    def _resize(self, n: int) -> None:
        """Starts workers, or makes some leave, so that there are `n` places."""
        staying = [m for m in self.slots if m.state != "leaving"]
        for _ in range(len(staying), n):
            taken = {m.index for m in self.slots}
            m = _Slot(next(i for i in range(len(taken) + 1) if i not in taken), self._lock)
            self.slots.append(m)
            for task in (self._serve, self._feed):
                self._start_thread(task, m)
        staying.sort(key=lambda m: (m.state == "ready", len(m.asked)))  # those with the least work leave first
        for m in staying[: max(len(staying) - n, 0)]:
            if m.state == "gone":
                self._remove(m)
            else:
                m.state = "leaving"
                self._dismiss(m)
        self._tell_all()

    def _start_thread(self, task: Callable[..., None], *args: Any) -> None:
        self._threads = [t for t in self._threads if t.is_alive()]
        t = threading.Thread(target=task, args=args, name="penstock-workers", daemon=True)
        self._threads.append(t)
        t.start()

    def _dismiss(self, m: _Slot) -> None:
        """Ends a leaving worker once it has answered all its orders."""
        if m.state == "leaving" and not m.asked and m.link is not None:
            m.link.hang_up()

    def _remove(self, m: _Slot) -> None:
        self.slots.remove(m)
        self._busy_before += m.busy

    def _forget_gone(self, now: float) -> None:
        """Removes workers that have been gone for long, so that others can take their places."""
        for m in [m for m in self.slots if m.state == "gone" and m.failures > 0]:
            if now - m.gone_since > _AGAIN_SECONDS:
                self._remove(m)

    # Threads ------------------------------------------------------------------------------------------------------

    def _serve(self, m: _Slot) -> None:
        """Keeps a worker running and receives its answers."""
        while True:
            link = self._make_link(m.index)
            with self._lock:
                if self._closing or m.state == "leaving":
                    self._remove(m)
                    return
                m.link = link
            try:
                link.open()
                with self._lock:
                    m.is_late = False
                    if m.state == "starting":
                        m.state = "ready"
                    self._tell_all()
                while True:
                    self._take(m, link.name, *link.receive())
            except WorkerLost as e:
                more = self._lose(m, str(e))
            except WorkerRefused as e:
                more = False
                with self._lock:
                    m.state, m.why, m.failures, m.link = "gone", str(e), -1, None
                    self._tell_all()
            except Exception as e:  # for example, the machine has no memory or processes left
                more = self._lose(m, f"({link.name}) failed: {type(e).__name__}: {e}")
            link.hang_up()
            link.end()
            if not more:
                return
            if m.failures > 1:
                time.sleep(min(0.05 * 2**m.failures, 1.0))

    def _take(self, m: _Slot, name: str, answer: Answer, batches: Any) -> None:
        with self._lock:
            m.failures, m.is_late, now = 0, False, time.monotonic()
            asked = m.take(answer.number, now)
            if asked is not None:
                self._took.append(now - asked.sent[m])
                if asked.answer is None and asked.is_wanted:  # otherwise another worker was faster
                    asked.answer, asked.batches, asked.worker = answer, batches, name
                    asked.changed.notify_all()
                    if asked in self._todo:
                        self._todo.remove(asked)
            self._dismiss(m)
            if m.state == "leaving" or self._next_for(m) is not None:
                m.changed.notify()

    def _lose(self, m: _Slot, why: str) -> bool:
        """Handles a lost worker; returns whether to start another one in its place."""
        with self._lock:
            now = time.monotonic()
            for i, a in enumerate(m.take_all(now)):
                a.deaths += i < AT_ONCE  # only the first ones were started, so the others did not kill it
                self._again(a)
            m.link = None
            if m.state == "leaving":
                self._remove(m)
            else:
                m.why, m.gone_since = why, now
                m.failures += 1
                m.state = "gone" if m.failures >= _MOST_FAILURES or self._closing else "starting"
            self._tell_all()
            return m.state == "starting"

    def _hand_out(self) -> None:
        """Wakes the threads of workers that can take a batch, usually one. Requires _lock."""
        for m in self.slots:
            if self._next_for(m) is not None:
                m.changed.notify()

    def _tell_all(self) -> None:
        """Wakes all threads after a change that may concern any of them. Requires _lock."""
        for m in self.slots:
            m.changed.notify_all()
        for asked in self._waiting:
            asked.changed.notify_all()

    def _next_for(self, m: _Slot) -> PendingBatch | None:
        """The next batch for a worker, not one it already has; None if there is none. Requires _lock."""
        if self._closing or m.state != "ready" or m.is_late or len(m.asked) >= self._depth:
            return None
        return next((a for a in self._todo if a.order.number not in m.asked), None)

    def _feed(self, m: _Slot) -> None:
        """Sends a worker as many batches as it has room for."""
        while True:
            with self._lock:
                while (asked := self._next_for(m)) is None:
                    if self._closing or m.state in ("leaving", "gone"):
                        return
                    m.changed.wait()
                self._todo.remove(asked)
                now = asked.sent[m] = time.monotonic()
                m.put(asked, now)
                link = m.link
            assert link is not None
            try:
                link.send(asked.order)
            except WorkerLost:
                pass  # the receiving thread also gets an error
            except Exception:
                link.hang_up()  # the batch is then requested from another worker
            asked = link = None  # so that an idle thread keeps no batch alive

    def _scale(self) -> None:
        """Adjusts the number of workers to the trainer's needs."""
        while not self._end.wait(PERIOD_SECONDS):
            with self._lock:
                now = time.monotonic()
                self._forget_gone(now)
                busy = self._busy_before + sum(m.busy_until(now) for m in self.slots)
                asked, all_ready = self._number, all(m.state != "starting" for m in self.slots)
            try:
                self._wanted = self._scaling.wanted(self._wanted, now, busy, asked, all_ready)
            except Exception:  # the cluster does not respond; if its workers are gone, their links report it
                continue
            with self._lock:
                if not self._closing:
                    self._resize(self._wanted)
