# SPDX-License-Identifier: Apache-2.0
"""How the GPU's video engines and the CPU share the videos of a batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Sharing:
    """How many videos of a batch the CPU decodes beside the engines: as many as it is through with when the engines
    are, by the times of the batches before. None as long as the engines have to wait for work anyway, and none where
    even one takes the CPU longer than all others take the engines."""

    IDLE, MOST, PAUSE = 0.1, 0.5, 64

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock, self._lock = clock, threading.Lock()
        self._running, self._changed = 0, clock()  # batches, and since when there are none, or some
        self._waited = 0.0  # seconds without any, before those that run now
        self._idle = 1.0  # the share of such times, of late
        self._share, self._pause = 0.0, 0  # the CPU's, and for how many batches it is not tried again

    def begin(self, n: int) -> int:
        """How many of n videos are the CPU's."""
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
