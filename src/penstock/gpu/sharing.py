# SPDX-License-Identifier: Apache-2.0
"""How the JPEG engine and the kernels share pictures, by what is measured while they work."""

from __future__ import annotations

import threading
import time

import numpy as np

_WEIGHT = 0.15  # of the newest measurement
_EASY, _HARD = 1.5, 1.0  # the engine's speed, as a multiple of what is asked for, at which it takes all, or nothing
_BUSY = 0.9  # share of the time from which on the kernels are what all wait for
_LEAST = 0.25  # fewer pictures cost the engine as much time as these
_PAUSE = 4.0  # times what a batch took lately; more is a pause, such as a validation, and tells nothing of what comes
_HOPE = 1.01  # a batch; what was measured long ago may have got better, up to the best that was seen


class _Rate:
    """Bytes a second, over the last batches."""

    def __init__(self) -> None:
        self.nbytes = self.seconds = 0.0

    def add(self, nbytes: float, seconds: float) -> None:
        if seconds > 0:
            self.nbytes += _WEIGHT * (nbytes - self.nbytes) if self.nbytes else nbytes
            self.seconds += _WEIGHT * (seconds - self.seconds) if self.seconds else seconds

    def add_wanted(self, nbytes: float, seconds: float) -> None:
        """As `add`, where the seconds also are those in which nobody wanted anything."""
        self.add(nbytes, min(seconds, _PAUSE * self.seconds) if self.seconds else seconds)

    @property
    def value(self) -> float:
        return self.nbytes / self.seconds if self.seconds else 0.0


class Sharing:
    """The engine costs the GPU's multiprocessors nothing but is slow, the kernels are fast: so the engine takes all
    where it is fast enough for what is asked for, as when a training step takes longer; nothing where more is wanted
    and the kernels can do it; and as much as makes both end at the same time where the kernels can't."""

    def __init__(self, engine: str, kernels: str, others: tuple[str, ...] = ()):
        self.engine, self.kernels = engine, kernels
        self.decoded: dict[str, int] = dict.fromkeys((engine, kernels, *others), 0)
        self.has_engine = False
        self._rates = {engine: _Rate(), kernels: _Rate()}
        self._best = 0.0  # of the engine
        self._asked = _Rate()
        self._busy = _Rate()  # seconds of work in the seconds there were
        self._last = 0.0
        self._lock = threading.Lock()

    @property
    def speeds(self) -> dict[str, float]:
        """Bytes of files a second that the two can do, and what is asked for."""
        return {name: rate.value for name, rate in (*self._rates.items(), ("asked for", self._asked))}

    @property
    def knows_both(self) -> bool:
        """Whether there is something to share by."""
        return bool(self._rates[self.kernels].nbytes) and (not self.has_engine or bool(self._rates[self.engine].nbytes))

    def measured(self, name: str, nbytes: int, seconds: float, samples: int, between: float = 0.0) -> None:
        """One of the two was busy for `seconds` with `nbytes`, which were done `between` seconds after the last."""
        with self._lock:
            self._rates[name].add(nbytes, seconds)
            if name == self.engine and seconds:
                self._best = max(self._best, nbytes / seconds)
            if between:
                self._busy.add_wanted(seconds, between)
            self.decoded[name] += samples

    def share(self, nbytes: float, now: float | None = None) -> float:
        """Which share of the next batch, of so many bytes, the engine takes; the kernels take the rest."""
        now = time.monotonic() if now is None else now
        with self._lock:
            if self._last:
                self._asked.add_wanted(nbytes, now - self._last)
            self._last = now
            return self._share()

    def _share(self) -> float:
        if not self.has_engine:
            return 0.0
        engine, kernels, asked = self._rates[self.engine].value, self._rates[self.kernels].value, self._asked.value
        if not (engine and kernels and asked):
            return 0.5
        share = min(max((engine / asked - _HARD) / (_EASY - _HARD), 0.0), 1.0)
        if self._busy.value > _BUSY:
            share = max(share, engine / (engine + kernels))
        if share < _LEAST:
            if engine < self._best:
                self._rates[self.engine].seconds /= _HOPE
            return 0.0
        return share


def spread(n: int, share: float) -> np.ndarray:
    """Which of n pictures (n,) are a share: evenly over all, so that both parts are the same mixture of sizes."""
    return np.diff(np.floor(np.arange(n + 1) * share)) > 0
