# SPDX-License-Identifier: Apache-2.0
"""How many workers there should be, by how long the trainer waits and how busy the workers are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

PERIOD_SECONDS = 2.0  # between two looks
_WAITS = 0.05  # of the time: more are started from here on,
_IS_BUSY = 0.7  # if those there are have no time left
_IDLE = 0.6  # of the time of one worker less: from here on it could leave,
_LOOKS_IDLE = 5  # if that is so for a while, as it takes longer to start one than to keep it
_GROWS_BY = 4  # a quarter


class Limits(NamedTuple):
    """How many workers there may be. Both may change: machines join a cluster and leave it."""

    least: Callable[[], int]
    most: Callable[[], int]


def fixed(n: int) -> Callable[[], int]:
    return lambda: n


class Autoscaler:
    """Decides how many workers there should be. `waited_ns` tells what the trainer has waited so far."""

    def __init__(self, limits: Limits, waited_ns: Callable[[], int]):
        self.limits, self._waited_ns = limits, waited_ns
        self._seen: tuple[float, int, float, int] | None = None  # time, waited, busy, asked
        self._idle = 0  # looks in a row

    def wanted(self, n: int, now: float, busy: float, asked: int, all_ready: bool) -> int:
        """The number to have from `now` on, of `n`. `busy`: seconds of all workers that had something to do so far;
        `asked`: how many batches were asked for so far. Both since the beginning, as what the trainer has waited."""
        seen, waited = self._seen, self._waited_ns()
        if seen is None or not all_ready:
            self._seen = now, waited, busy, asked
        elif asked > seen[3] and now > seen[0]:  # else the trainer does something else, or waits: that is seen later
            self._seen = now, waited, busy, asked
            seconds = now - seen[0]
            n = self._decide(n, (waited - seen[1]) / 1e9 / seconds, (busy - seen[2]) / seconds)
        return max(min(n, self.limits.most()), self.limits.least(), 1)

    def _decide(self, n: int, waits: float, busy: float) -> int:
        """`waits`: which part of the time the trainer waited; `busy`: how many workers had something to do."""
        self._idle = self._idle + 1 if waits < _WAITS and busy < _IDLE * (n - 1) else 0
        if self._idle >= _LOOKS_IDLE:
            self._idle = 0
            return n - 1
        if waits > _WAITS and busy > _IS_BUSY * n:
            return n + max(n // _GROWS_BY, 1)
        return n
