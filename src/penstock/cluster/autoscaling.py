# SPDX-License-Identifier: Apache-2.0
"""Chooses the number of workers, by how long the trainer waits and how busy the workers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

PERIOD_SECONDS = 2.0  # between two decisions
_WAITS = 0.05  # waiting share above which workers are added,
_IS_BUSY = 0.7  # if the workers are busy for more than this share
_IDLE = 0.6  # busy share of n - 1 workers below which one worker is not needed
_LOOKS_IDLE = 5  # consecutive idle decisions before one is removed, as starting one takes longer than keeping it
_GROWS_BY = 4  # growth per decision: 1 / this


class Limits(NamedTuple):
    """Minimum and maximum number of workers. Both may change, as machines join and leave a cluster."""

    least: Callable[[], int]
    most: Callable[[], int]


def fixed(n: int) -> Callable[[], int]:
    return lambda: n


class Autoscaler:
    """Chooses the number of workers. `waited_ns()` is the total time the trainer has waited."""

    def __init__(self, limits: Limits, waited_ns: Callable[[], int]):
        self.limits, self._waited_ns = limits, waited_ns
        self._seen: tuple[float, int, float, int] | None = None  # time, waited, busy and asked at the last decision
        self._idle = 0  # consecutive idle decisions

    def wanted(self, n: int, now: float, busy: float, asked: int, all_ready: bool) -> int:
        """The new number of workers, currently `n`. `busy`: total busy seconds of all workers; `asked`: total number of
        batches requested. Both are since the start, as is the trainer's waiting time."""
        seen, waited = self._seen, self._waited_ns()
        if seen is None or not all_ready:
            self._seen = now, waited, busy, asked
        elif asked > seen[3] and now > seen[0]:  # otherwise the trainer is busy elsewhere or waits: decide later
            self._seen = now, waited, busy, asked
            seconds = now - seen[0]
            n = self._decide(n, (waited - seen[1]) / 1e9 / seconds, (busy - seen[2]) / seconds)
        return max(min(n, self.limits.most()), self.limits.least(), 1)

    def _decide(self, n: int, waits: float, busy: float) -> int:
        """`waits`: share of the time the trainer waited; `busy`: average number of busy workers."""
        self._idle = self._idle + 1 if waits < _WAITS and busy < _IDLE * (n - 1) else 0
        if self._idle >= _LOOKS_IDLE:
            self._idle = 0
            return n - 1
        if waits > _WAITS and busy > _IS_BUSY * n:
            return n + max(n // _GROWS_BY, 1)
        return n
