# SPDX-License-Identifier: Apache-2.0
"""Batches that workers prepare for one source, taken in order."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from ..core.batch import Batch


class Position(NamedTuple):
    """A source's position; all counts start at 0, `iteration` and `in_epoch` in each epoch."""

    epoch: int = 0
    iteration: int = 0
    in_epoch: int = 0

    def after(self, n: int) -> Position:
        return Position(self.epoch, self.iteration + 1, self.in_epoch + n)

    def next_epoch(self) -> Position:
        return Position(self.epoch + 1, 0, 0)


class Ahead:
    """Requests `depth` batches ahead from a pool."""

    def __init__(self, pool: Any, source: int, depth: int, room: int):
        self.pool, self.source, self.depth, self.room = pool, source, depth, room
        self._jobs: deque[Any] = deque()
        self._position = Position()  # of the next batch to request

    def take(self, position: Position, n: int) -> tuple[list[Batch], int, dict[int, str]]:
        """Returns the batch of `n` samples (0: of one call) at a position: one Batch per output without the bad
        samples, the number of samples including them, and the reasons of the bad ones."""
        if self._jobs and (self._jobs[0].n != n or self._place() != position):
            self.drop()  # the batch size or position has changed
        if not self._jobs:
            self._position = position
        while len(self._jobs) <= self.depth:
            p = self._position
            self._jobs.append(self.pool.schedule(self.source, *p, n, self.room))
            self._position = p.after(n)  # with n = 0 the size is unknown, and `in_epoch` does not count it
        try:
            job = self._jobs.popleft()
            batches = self.pool.wait(job)
            return batches, job.n_samples if n else len(batches[0]), job.bad
        except StopIteration:
            self.drop()
            raise

    def _place(self) -> Position:
        job = self._jobs[0]
        return Position(job.epoch, job.iteration, job.in_epoch)

    def drop(self) -> None:
        """Cancels the requested batches."""
        while self._jobs:
            self.pool.cancel(self._jobs.popleft())

    def close(self) -> None:
        self._jobs.clear()
        self.pool.close()
