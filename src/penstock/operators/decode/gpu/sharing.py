# SPDX-License-Identifier: Apache-2.0
"""Distributes the videos of a batch between the GPU's video engines and the CPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Sharing:
    """Number of videos of a batch that the CPU decodes concurrently: such that CPU and engines finish at the same time,
    according to previous batches. 0 while the engines are idle part of the time, or if one video takes the CPU longer
    than all others take the engines. This is tried with one batch at a time, as the next ones wait for it, and more
    and more seldom."""

    IDLE, MOST, FIRST_PAUSE, LONGEST_PAUSE = 0.1, 0.5, 64, 1 << 14

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock, self._lock = clock, threading.Lock()
        self._running, self._changed = 0, clock()  # running batches; time at which this became 0, or more than 0
        self._waited = 0.0  # seconds without running batches, before the current ones
        self._idle = 1.0  # moving average of the idle fraction of time
        self._share = 0.0  # the CPU's share of videos
        self._n = 1  # videos of the last batch
        self._is_trying = False  # whether a batch tries if the CPU is fast enough for one video
        self._pause, self._next_pause = 0, self.FIRST_PAUSE  # batches until this is tried again, and after that
        self._older = 0  # running batches that began before the share was last changed

    def begin(self, n: int) -> int:
        """Number of videos, of n, for the CPU."""
        with self._lock:
            if not self._running:
                self._waited, self._changed = self._clock() - self._changed, self._clock()
            else:
                self._idle *= 0.8
            self._running += 1
            if self._idle > self.IDLE or n < 2 or self._is_trying:
                return 0
            self._n = n
            if self._share:
                return min(round(self._share * n), n - 1)
            if self._pause:
                self._pause -= 1
                return 0
            self._is_trying = True
            return 1

    def end(self, shared: int, by_engines_s: float, by_cpu_s: float) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                worked = self._clock() - self._changed
                self._changed = self._clock()
                self._idle = 0.8 * self._idle + 0.2 * self._waited / max(self._waited + worked, 1e-9)
            if not shared:
                return
            if self._is_trying:
                self._is_trying = False
                self._set(1 / self._n if by_cpu_s < by_engines_s else 0.0)
            elif self._older:
                self._older -= 1
            elif by_cpu_s < by_engines_s:
                self._set(min(1.1 * self._share, self.MOST))
            else:
                self._set(self._share * max(0.9 * by_engines_s / by_cpu_s, 0.5))

    def _set(self, share: float) -> None:
        if round(share * self._n):
            self._older = self._running if self._share else 0
            self._share, self._next_pause = share, self.FIRST_PAUSE
        else:
            self._share, self._older = 0.0, 0
            self._pause, self._next_pause = self._next_pause, min(2 * self._next_pause, self.LONGEST_PAUSE)
