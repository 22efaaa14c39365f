# SPDX-License-Identifier: Apache-2.0
"""How engines share the pictures of a batch: by the speeds measured so far, so that they end at the same time."""

from __future__ import annotations

import threading

import numpy as np

_WEIGHT = 0.15  # of the newest measurement
_LEAST = 0.02  # an engine that is left out could never show that it got faster


class Sharing:
    """Speeds in bytes of encoded data a second, and what each engine has still to do."""

    def __init__(self, engines: tuple[str, ...]):
        self.speeds: dict[str, float] = dict.fromkeys(engines, 0.0)
        self.decoded: dict[str, int] = dict.fromkeys(engines, 0)
        self._waiting: dict[str, float] = dict.fromkeys(engines, 0.0)
        self._lock = threading.Lock()

    def measured(self, engine: str, nbytes: int, seconds: float, samples: int) -> None:
        """An engine has been busy for `seconds` with `nbytes`."""
        if seconds <= 0 or nbytes <= 0:
            return
        with self._lock:
            if engine in self.speeds:
                speed, old = nbytes / seconds, self.speeds[engine]
                self.speeds[engine] = speed if not old else old + _WEIGHT * (speed - old)
            self.decoded[engine] += samples

    def drop(self, engine: str) -> None:
        """An engine that does not work."""
        with self._lock:
            self.speeds.pop(engine, None)

    def began(self, engine: str, nbytes: float) -> None:
        """An engine was given work."""
        with self._lock:
            self._waiting[engine] += nbytes

    def finished(self, engine: str, nbytes: float) -> None:
        """That work is done."""
        with self._lock:
            self._waiting[engine] -= nbytes

    def split(self, nbytes: np.ndarray, first: str, second: str) -> np.ndarray:
        """Which pictures (n,) of these sizes the engine `first` takes; `second` takes the others."""
        n, total = len(nbytes), float(nbytes.sum())
        with self._lock:
            a, b = self.speeds.get(first), self.speeds.get(second)
            if a is None or b is None:
                return np.full(n, a is not None)
            share = 0.5
            if a and b and total:
                # Both end at the same time: (waiting_a + x) / a == (waiting_b + total - x) / b.
                x = (a * (self._waiting[second] + total) - b * self._waiting[first]) / (a + b)
                share = min(max(x / total, _LEAST), 1 - _LEAST)
            # Spread evenly over the batch, so that both engines meet the same mixture of sizes.
            return np.diff(np.floor(np.arange(n + 1) * share)) > 0
