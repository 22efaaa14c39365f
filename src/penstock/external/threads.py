# SPDX-License-Identifier: Apache-2.0
"""Worker threads instead of processes: for sources that release the GIL, and for free-threaded Python."""

from __future__ import annotations

import queue
import threading
import time
import traceback
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.batch import Batch
from ..core.errors import DataError, WorkerError
from . import failure, samples
from .calling import Calling
from .task import Task

_WAIT_SECONDS = 0.2


class _Job:
    """A batch that threads make: a list of samples per output, or one batch per output."""

    def __init__(
        self, source: int, epoch: int, iteration: int, in_epoch: int, n: int, room: int, indices: tuple[int, ...]
    ):
        self.task = Task(0, source, epoch, iteration, in_epoch, 0, n, room, 0, 0, (), indices)
        self.epoch, self.iteration, self.in_epoch, self.n = epoch, iteration, in_epoch, n
        self.results: list[Any] = [None] * max(n, 1)  # per sample a list of arrays; or (n = 0) from `samples_of`
        self.left = max(n, 1)
        self.end: int | None = None
        self.errors: dict[int, Exception] = {}
        self.bad: dict[int, str] = {}  # by sample, the reason why it could not be made; left to on_error
        self.cancelled = False
        self.running: dict[int, tuple[float, str]] = {}  # by sample: start time and thread
        self.changed = threading.Condition()

    @property
    def n_samples(self) -> int:
        """Number of samples, including bad ones."""
        return self.n if self.end is None else self.end

    def settle(
        self, row: int, result: Any = None, error: Exception | None = None, ended: bool = False, bad: str | None = None
    ) -> None:
        with self.changed:
            if row in self.bad:
                return  # given up earlier
            self.results[row] = result
            if bad is not None:
                self.bad[row] = bad
            if error is not None:
                self.errors[row] = error
            if ended:
                self.end = row if self.end is None else min(self.end, row)
            self.running.pop(row, None)
            self.left -= 1
            self.changed.notify_all()


_Queue = queue.SimpleQueue  # contains (job, sample); None ends the thread


class ThreadPool:
    """As `Pool`, with threads of this process. One thread calls all iterables."""

    def __init__(self, sources: Sequence[Calling], n_workers: int, copy: Sequence[bool]):
        self.sources, self.copy, self.n_workers = list(sources), list(copy), n_workers
        self.timeouts: list[float | None] = [None] * len(self.sources)
        self.closed = False
        self._tasks: _Queue[tuple[_Job, int] | None] = _Queue()
        self._iterate: _Queue[tuple[_Job, int] | None] = _Queue()
        self._queues: list[_Queue[tuple[_Job, int] | None]] = []  # the queue of each thread
        # The threads do not refer to the pool, so that they end with it.
        self._end = weakref.finalize(self, _end_all, self._queues)
        self._end.atexit = False
        for _ in range(n_workers):
            self._start(self._tasks)
        if any(c.is_iterable for c in self.sources):
            self._start(self._iterate)

    def _start(self, tasks: _Queue[tuple[_Job, int] | None]) -> None:
        i = len(self._queues)
        self._queues.append(tasks)
        threading.Thread(target=_work, args=(self.sources, tasks), name=f"penstock-source{i}", daemon=True).start()

    def schedule(
        self, source: int, epoch: int, iteration: int, in_epoch: int, n: int, room: int, indices: tuple[int, ...] = ()
    ) -> _Job:
        job = _Job(source, epoch, iteration, in_epoch, n, room, indices)
        tasks = self._iterate if self.sources[source].is_iterable else self._tasks
        for row in range(max(n, 1)):
            tasks.put((job, row))
        return job

    def wait(self, job: _Job) -> list[Batch]:
        while True:
            with job.changed:
                if not job.left:
                    break
                job.changed.wait(_WAIT_SECONDS)
                self._check(job)
        row = min(job.errors, default=None)
        if job.end is not None and (row is None or job.end <= row):
            if not (self.sources[job.task.source].keeps_rest and job.end):
                raise StopIteration(job.end)
            row = None
        if row is not None:
            raise job.errors[row]
        return self._batches(job)

    def _check(self, job: _Job) -> None:
        if self.closed:
            raise RuntimeError("the pipeline was closed while it waited for data")
        limit = self.timeouts[job.task.source]
        for row, (began, thread) in list(job.running.items()):
            if limit is not None and time.monotonic() - began > limit:
                calling = self.sources[job.task.source]
                if not calling.is_iterable:
                    self._start(self._tasks)  # replaces the stuck thread
                what = failure.doing(job.task, calling.name, row)
                text = f"worker thread {thread} took longer than timeout={limit:g} s {what}; a thread can't be stopped"
                if calling.leaves_out:
                    job.settle(row, bad=text)
                    continue
                job.cancelled = True
                raise WorkerError(text)

    def _batches(self, job: _Job) -> list[Batch]:
        copy, rows = self.copy[job.task.source], job.results
        if not job.n:
            return samples.batches_of(rows[0], copy)
        rows = [row for i, row in enumerate(rows[: job.n_samples]) if i not in job.bad]
        if not rows:
            return [Batch.from_array(np.empty((0, 0), "f4"))] * (self.sources[job.task.source].n_outputs or 1)
        columns = [list(column) for column in zip(*rows)]
        for row in rows:
            row.clear()  # drops references, as arrays with a single reference need not be copied
        return [samples.adopt(column, copy) for column in columns]

    def cancel(self, job: _Job) -> None:
        job.cancelled = True

    def memory(self) -> list[int]:
        return []

    def pids(self) -> list[int]:
        return []

    def close(self) -> None:
        self.closed = True
        if self._end.detach():
            _end_all(self._queues)


def _end_all(queues: list[_Queue[tuple[_Job, int] | None]]) -> None:
    for tasks in queues:
        tasks.put(None)


def _work(sources: list[Calling], tasks: _Queue[tuple[_Job, int] | None]) -> None:
    while (item := tasks.get()) is not None:
        job, row = item
        _make(sources[job.task.source], job, row)
        del item, job


def _make(calling: Calling, job: _Job, row: int) -> None:
    task = job.task
    if job.cancelled or min(job.errors, default=row) < row or (job.end is not None and job.end < row):
        job.settle(row)
        return
    thread = threading.current_thread().name.removeprefix("penstock-")
    with job.changed:
        job.running[row] = time.monotonic(), thread
    try:
        if job.n:
            data: Any = calling.outputs(calling.sample(task.place(row), row, task.iteration, task.epoch))
            result = [samples.as_array(d, t, calling.stream) for d, t in zip(data, calling.number_types)]
        else:
            given: Any = calling.outputs(calling.batch(task.iteration, task.epoch))
            result = samples.samples_of(given, calling.number_types, calling.stream)
            given = None
        data = None
        del data
        job.settle(row, result)
    except StopIteration:
        job.settle(row, ended=True)
    except Exception as e:
        if calling.leaves_out:
            job.settle(row, bad=failure.reason(e))
            return
        if not isinstance(e, DataError):
            job.settle(row, error=e)
            return
        what = failure.doing(task, calling.name, row)
        job.settle(row, error=type(e)(f"{e}\nfrom worker thread {thread} {what}"))
    except BaseException:
        job.settle(row, error=WorkerError(traceback.format_exc()))
