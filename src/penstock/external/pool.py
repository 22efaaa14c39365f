# SPDX-License-Identifier: Apache-2.0
"""The worker processes of a pipeline, managed by its main process."""

from __future__ import annotations

import atexit
import os
import pickle
import select
import socket
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentValueError, WorkerError
from ..core.weak_set import WeakSet
from . import arena, by_value, failure, launch
from .calling import Calling
from .job import Job, Sizes
from .task import MAX_MESSAGE, Done, Ended, Failed, Ready, Task
from .worker_process import EXIT_SECONDS, WorkerProcess

_POLL_MS = 200
_AHEAD_NS = 20_000_000  # queued work per worker, so that it does not idle between messages
_MOST_WAITING = 64  # maximum queued tasks; their messages fit into the socket's buffer
_WARN_SECONDS = 30.0
_MOST_RESTARTS = 16


class Pool:
    """Starts `n_workers` processes for `sources` and sends them the tasks of jobs, which are done in any order.

    Every iterable source belongs to one worker; other tasks go to the worker with the least work.
    """

    def __init__(
        self, sources: Sequence[Calling], n_workers: int, method: str, pickler: Any, hints: Sequence[list[int] | None]
    ):
        if n_workers < 1:
            raise ArgumentValueError(f"py_num_workers takes a positive integer; got {n_workers}")
        if method == "fork":
            launch.check_fork()
        self.sources, self.method, self.n_workers = list(sources), method, n_workers
        self.sizes = [Sizes(c.n_outputs or 1, hint) for c, hint in zip(sources, hints)]
        self.timeouts: list[float | None] = [None] * len(self.sources)
        self._pid = os.getpid()
        self._given: Any = self.sources if method == "fork" else by_value.dumps_sources(self.sources, method, pickler)
        self._fd = arena.create(n_workers)
        self._regions = arena.Regions(self._fd)
        self._status = arena.Status(self._fd, n_workers)
        self._workers = [WorkerProcess(i) for i in range(n_workers)]
        self._pending: deque[tuple[Job, Task]] = deque()
        self._number = 1
        self._restarts = 0
        self._looked = time.monotonic()
        self._lost: dict[int, str] = {}  # iterables that can't continue, with the reason
        self._poll = select.poll()
        self._by_fd: dict[int, WorkerProcess] = {}
        self._lock = threading.RLock()
        self.closed = False
        self._end = weakref.finalize(self, _end_all, self._workers, self._fd, self._pid)
        self._end.atexit = False
        _LIVE.add(self)
        try:
            for w in self._workers:
                self._start(w)
        except BaseException:
            self.close()
            raise

    # Jobs -----------------------------------------------------------------------------------------------------------

    def schedule(
        self, source: int, epoch: int, iteration: int, in_epoch: int, n: int, room: int, indices: tuple[int, ...] = ()
    ) -> Job:
        """Requests a batch of `n` samples, or (n = 0) of one call that returns at most `room` samples. `indices`: which
        samples of a data set; otherwise the next ones."""
        with self._lock:
            self._check_open()
            job = Job(source, epoch, iteration, in_epoch, n, room, indices)
            n_outputs = self.sources[source].n_outputs or 1
            tasks = job.lay_out(self._regions, self.sizes[source], n_outputs, len(self._workers), self._number)
            self._number += len(tasks)
            self._pending.extend((job, t) for t in tasks)
            self._hand_out()
            return job

    def wait(self, job: Job) -> list[Any]:
        """Waits for a job and returns one Batch per output. Raises the source's exception, or WorkerError."""
        with self._lock:
            while not job.done:
                self._check_open()
                self._listen(_POLL_MS)
            problem = job.first_problem(self.sources[job.source].keeps_rest)
            if problem is not None:
                raise problem
            return job.batches()

    def cancel(self, job: Job) -> None:
        """Cancels a job; tasks that workers have already received are still finished."""
        with self._lock:
            job.cancelled = True
            for other, task in self._pending:
                if other is job:
                    del job.tasks[task.number]
            self._pending = deque((j, t) for j, t in self._pending if j is not job)

    def memory(self) -> list[int]:
        """Bytes of each region of shared memory."""
        return list(self._regions.capacities.values())

    def pids(self) -> list[int]:
        return [w.process.pid for w in self._workers if w.alive and w.process is not None]

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("the worker processes belong to the process that started them; build a pipeline here")
        if self.closed:
            raise RuntimeError("the pipeline was closed while it waited for data")

    # Workers --------------------------------------------------------------------------------------------------------

    def _start(self, w: WorkerProcess) -> None:
        self._status.clear(w.index)
        fd = w.start(self.method, self.n_workers, self._fd, self._given)
        self._by_fd[fd] = w
        self._poll.register(fd, select.POLLIN)

    def _owner(self, source: int) -> WorkerProcess | None:
        """The only worker that may call a source; None if any may."""
        if not self.sources[source].is_iterable:
            return None
        iterables = [i for i, c in enumerate(self.sources) if c.is_iterable]
        return self._workers[iterables.index(source) % len(self._workers)]

    def _hand_out(self) -> None:
        """Sends pending tasks to workers with little work."""
        kept: deque[tuple[Job, Task]] = deque()
        while self._pending:
            job, task = self._pending.popleft()
            if job.is_lost_from(task.first):
                del job.tasks[task.number]
                continue
            if task.source in self._lost:
                del job.tasks[task.number]
                job.errors[task.first] = WorkerError(self._lost[task.source])
                continue
            owner = self._owner(task.source)
            able = [w for w in ([owner] if owner else self._workers) if w.alive]
            if not able:
                del job.tasks[task.number]
                job.errors.setdefault(task.first, WorkerError(self._none_left()))
                continue
            w = min(able, key=lambda w: (len(w.waiting) if not w.load_ns else w.load_ns, len(w.waiting)))
            if len(w.waiting) >= 2 and (w.load_ns > _AHEAD_NS or len(w.waiting) >= _MOST_WAITING):
                kept.append((job, task))
                if owner is None:
                    break
                continue
            cost = self.sizes[task.source].ns * (task.n or 1)
            assert w.sock is not None
            w.waiting[task.number] = job, task, cost
            w.load_ns += cost
            try:
                w.sock.send(pickle.dumps(tuple(task), 5))
            except OSError:
                self._bury(w)
        kept.extend(self._pending)
        self._pending = kept

    def _listen(self, timeout_ms: int) -> None:
        """Receives replies within that time, and checks on the workers."""
        ready = self._poll.poll(timeout_ms)
        for fd, _ in ready:
            w = self._by_fd.get(fd)
            if w is not None:
                self._receive(w)
        if time.monotonic() > self._looked + _POLL_MS / 1000:
            self._looked = time.monotonic()
            self._look_after()
        if self._pending:
            self._hand_out()

    def _receive(self, w: WorkerProcess) -> None:
        while w.sock is not None:
            try:
                message = w.sock.recv(MAX_MESSAGE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self._bury(w)
                return
            reply = pickle.loads(message)
            if isinstance(reply, Ready):
                w.ready = True
                if reply.problem:
                    self._fail_to_start(f"{w.name} could not take over its sources: {reply.problem}")
                continue
            self._settle(w, reply)

    def _settle(self, w: WorkerProcess, reply: Done | Ended | Failed) -> None:
        if reply.number not in w.waiting:  # cancelled
            return
        job, task, cost = w.waiting.pop(reply.number)
        w.load_ns = w.load_ns - cost if w.waiting else 0.0
        w.warned = 0.0
        del job.tasks[reply.number]
        if isinstance(reply, Done):
            self.sizes[task.source].saw(reply)
        if isinstance(reply, (Done, Ended)):
            job.finish(reply, self._fd)
            w.spilled_to = max([w.spilled_to, *(at + size - arena.zone_of(w.index) for at, size in reply.spilled)])
        else:
            job.errors[reply.row] = failure.as_exception(reply, w.name, task, self.sources[task.source].name)

    # Failures -------------------------------------------------------------------------------------------------------

    def _current(self, w: WorkerProcess) -> tuple[Job, Task, int, float] | None:
        """What a worker is, or was, doing: job, task, sample, seconds since it started that."""
        number, row, began = self._status.of(w.index)[:3].tolist()
        if number not in w.waiting:
            return None
        job, task, _ = w.waiting[number]
        return job, task, row, (time.monotonic_ns() - began) / 1e9

    def _look_after(self) -> None:
        """Finds workers that died silently, and those that take too long."""
        for w in self._workers:
            if not w.alive or w.process is None:
                continue
            process = w.process
            if process.exitcode() is not None:
                self._receive(w)  # its last messages; at their end it may already have been replaced
                if w.alive and w.process is process:
                    self._bury(w)
                continue
            current = self._current(w)
            if current is None:
                continue
            job, task, row, seconds = current
            limit = self.timeouts[task.source]
            what = failure.doing(task, self.sources[task.source].name, row)
            if limit is not None and seconds > limit:
                text = f"{w.name} took longer than timeout={limit:g} s {what}{w.stack()}"
                w.process.kill()
                self._bury(w, text)
            elif seconds > (w.warned or _WARN_SECONDS):
                w.warned = 2 * seconds
                warnings.warn(
                    f"{w.name} has been busy for {seconds:.0f} s {what}{w.stack()}\n(external_source(timeout="
                    "seconds) makes that an error)",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def _bury(self, w: WorkerProcess, why: str = "") -> None:
        """Handles a dead worker: its current task fails, its other tasks go to other workers, and a new worker is
        started."""
        assert w.process is not None
        current, fd = self._current(w), w.fileno()
        was_ready = w.ready or current is not None  # its message may not have been received yet
        del self._by_fd[fd]
        self._poll.unregister(fd)
        w.hang_up()
        w.process.end(time.monotonic() + EXIT_SECONDS)
        how = failure.how_it_ended(w.process.exitcode())
        name = self.sources[current[1].source].name if current else ""
        if not why:
            why = f"{w.name} {how} {failure.doing(current[1] if current else None, name, current[2] if current else 0)}"
        waiting, w.waiting = w.waiting, {}
        lost = [current[1].number] if current else []
        if current and self.sources[current[1].source].leaves_out:
            self._restarts -= 1  # bad samples may be frequent, so this restart is not counted
        for number, (job, task, _) in waiting.items():
            calling = self.sources[task.source]
            if current and number in lost and calling.leaves_out:
                parts = job.leave_out(task, current[2], why, self._number)
                self._number += len(parts)
                self._pending.extendleft((job, part) for part in reversed(parts))
                continue
            if calling.is_iterable and not calling.restarts:
                self._lost[task.source] = f"the place in the iteration was lost: {why}"
            if number in lost or calling.is_iterable:
                del job.tasks[number]
                row = current[2] if current and number in lost else task.first
                job.errors[row] = WorkerError(why if number in lost else self._lost.get(task.source, why))
        self._pending.extendleft(
            (job, task) for number, (job, task, _) in reversed(list(waiting.items())) if number in job.tasks
        )
        if not was_ready:
            hint = ""
            if self.method != "fork":
                hint = (
                    "; what it said is above. A script that starts workers afresh needs its own work below "
                    "`if __name__ == '__main__':`"
                )
            self._fail_to_start(f"{w.name} {how} before it was ready{hint}")
            return
        self._replace(w)

    def _replace(self, w: WorkerProcess) -> None:
        self._restarts += 1
        if self._restarts > _MOST_RESTARTS or self.closed:
            return
        if self.method == "fork" and launch.cuda_is_initialised():
            return  # the other workers continue
        try:
            self._start(w)
        except OSError as e:
            warnings.warn(f"{w.name} could not be replaced: {e}", RuntimeWarning, stacklevel=2)

    def _none_left(self) -> str:
        return (
            f"of {len(self._workers)} worker processes none is left for this source, and none can be started in their "
            "place; build another pipeline"
        )

    def _fail_to_start(self, text: str) -> None:
        """Makes every requested batch fail."""
        jobs = {id(j): j for w in self._workers for j, _, _ in w.waiting.values()}
        jobs |= {id(j): j for j, _ in self._pending}
        self._pending.clear()
        for w in self._workers:
            w.waiting.clear()
        for job in jobs.values():
            job.tasks.clear()
            job.errors[0] = WorkerError(text)

    def close(self) -> None:
        """Ends all workers, including stuck ones."""
        self.closed = True
        held = self._lock.acquire(timeout=EXIT_SECONDS)  # a thread that waits for a batch soon notices
        if self._end.detach():  # called directly, as at exit `weakref` has already finished
            _end_all(self._workers, self._fd, self._pid)
        if held:
            self._lock.release()


def _end_all(workers: list[WorkerProcess], arena_fd: int, pid: int) -> None:
    for w in workers:
        w.hang_up()
    until = time.monotonic() + EXIT_SECONDS
    for w in workers:
        w.end(until if os.getpid() == pid else None)
    os.close(arena_fd)


_LIVE = WeakSet[Pool]()


@atexit.register
def _end_pools() -> None:
    for pool in list(_LIVE):
        if pool._pid == os.getpid():
            pool.close()


launch.AT_EXIT.append(_end_pools)
