# SPDX-License-Identifier: Apache-2.0
"""Distributes the videos of a batch between the GPU's video engines and the CPU."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Sharing:
    """Number of videos of a batch that the CPU decodes concurrently: such that CPU and engines finish at the same time,
    according to previous batches. 0 while the engines are idle part of the time, or if one video takes the CPU longer
    than all others take the engines."""

    IDLE, MOST, PAUSE = 0.1, 0.5, 64

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock, self._lock = clock, threading.Lock()
        self._running, self._changed = 0, clock()  # running batches; time at which this became 0, or more than 0
        self._waited = 0.0  # seconds without running batches, before the current ones
        self._idle = 1.0  # moving average of the idle fraction of time
        self._share, self._pause = 0.0, 0  # the CPU's share of videos; batches until it is tried again

    def begin(self, n: int) -> int:
        """Number of videos, of n, for the CPU."""
        with self._lock:
            if not self._running:
                self._waited, self._changed = self._clock() - self._changed, self._clock()
            else:
                self._idle *= 0.8
            self._running += 1
            if self._idle > self.IDLE or n < 2:
                return 0
            if not self._share and not self._pause:
                self._share = 1 / n
            self._pause = max(self._pause - 1, 0)
            return min(round(self._share * n), n - 1)

    def end(self, shared: int, by_engines_s: float, by_cpu_s: float) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                worked = self._clock() - self._changed
                self._changed = self._clock()
                self._idle = 0.8 * self._idle + 0.2 * self._waited / max(self._waited + worked, 1e-9)
            if not shared:
                return
            if by_cpu_s < by_engines_s:
                self._share = min(1.1 * self._share, self.MOST)
            else:
                self._share *= 0.9
                if shared == 1:
                    self._share, self._pause = 0.0, self.PAUSE
