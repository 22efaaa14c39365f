# SPDX-License-Identifier: Apache-2.0
"""Tunes the number of native threads and of batches prepared ahead while a pipeline runs.

The setting does not affect the batches, so trying is safe. A change is kept if the consumer gets more samples per
second with it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

_WINDOW_NS = 600_000_000  # minimum measuring time per setting
_WINDOW_BATCHES = 12
_PASSED_OVER = 3  # batches ignored after a change, as some were made before it
_KEEPS_UP = 0.02  # share of the time that the consumer may wait without tuning
_GAIN = 1.03  # required speedup of a change
_AGAIN_NS = 30_000_000_000  # time after which rejected settings are tried again
_LINES = 40  # maximum length of the history
_BUSY = 0.5  # busy share above which more threads are tried before more batches ahead


class Setting(NamedTuple):
    num_threads: int
    depth: int  # batches prepared ahead

    def __str__(self) -> str:
        threads = "1 thread" if self.num_threads == 1 else f"{self.num_threads} threads"
        return f"{threads}, {self.depth} batch{'es' * (self.depth > 1)} ahead"


class Reading(NamedTuple):
    """Sums since the pipeline was built."""

    waited_ns: int  # time that the consumer waited
    native_ns: int  # time that the native threads worked
    memory: int  # current bytes


class Tuner:
    """`most` is the largest setting, `memory` the maximum number of bytes; `read` returns the current sums.

    `history` lists the settings tried and their results, one per line.
    """

    def __init__(self, start: Setting, most: Setting, memory: int | None, read: Callable[[], Reading]):
        self.setting = self._best = start
        self._most, self._memory, self._read = most, memory, read
        self.history: deque[str] = deque(maxlen=_LINES)
        self._best_rate = 0.0  # samples/s
        self._tried: set[Setting] = set()  # settings not better than the best one
        self._idle_until = 0
        self._begin(_PASSED_OVER)

    def took(self, samples: int) -> Setting | None:
        """Call when the consumer gets a batch. Returns the setting to change to, or None."""
        if self._passing_over:
            self._begin(self._passing_over - 1)
            return None
        self._batches += 1
        self._samples += samples
        now = time.monotonic_ns()
        ns = now - self._since
        if self._batches < _WINDOW_BATCHES or ns < _WINDOW_NS:
            return None
        sums = self._read()
        waited = (sums.waited_ns - self._before.waited_ns) / ns
        busy = (sums.native_ns - self._before.native_ns) / ns / self.setting.num_threads
        self._judge(self._samples / ns * 1e9, sums.memory)
        chosen = self._best if waited < _KEEPS_UP or now < self._idle_until else self._another(busy, now)
        changes, self.setting = chosen != self.setting, chosen
        self._begin(_PASSED_OVER if changes else 0)
        return chosen if changes else None

    def _begin(self, passing_over: int) -> None:
        self._passing_over, self._batches, self._samples = passing_over, 0, 0
        self._since, self._before = time.monotonic_ns(), self._read()

    def _judge(self, rate: float, memory: int) -> None:
        """Compares the measured setting with the best one, and keeps the better."""
        what = f"{self.setting}: {rate:,.0f} samples/s"
        if self.setting == self._best:
            if not self._best_rate:
                self.history.append(f"{what}, to begin with")
            self._best_rate = rate
        elif self._memory is not None and memory > self._memory:
            self.history.append(f"{what}, but {memory / 1e6:,.0f} MB: not kept")
            self._tried.add(self.setting)
        elif rate < self._best_rate * _GAIN:
            self.history.append(f"{what}: not kept")
            self._tried.add(self.setting)
        else:
            self.history.append(f"{what}: kept")
            self._best, self._best_rate = self.setting, rate
            self._tried.clear()

    def _another(self, busy: float, now: int) -> Setting:
        """The next setting to try, starting with the likely bottleneck; the best one if none is left."""
        best, most = self._best, self._most
        threads = [best._replace(num_threads=n) for n in (best.num_threads * 2, best.num_threads + 1)]
        depths = [best._replace(depth=best.depth + 1), best._replace(depth=best.depth + 2)]
        both = [Setting(best.num_threads * 2, best.depth + 1)]
        for setting in (*threads, *depths, *both) if busy > _BUSY else (*depths, *threads, *both):
            limited = Setting(min(setting.num_threads, most.num_threads), min(setting.depth, most.depth))
            if limited != best and limited not in self._tried:
                return limited
        self._idle_until = now + _AGAIN_NS
        self._tried.clear()
        return best
