# SPDX-License-Identifier: Apache-2.0
"""Divides images between the JPEG engine and the kernels by speeds measured while they work."""

from __future__ import annotations

import threading
import time

import numpy as np

_WEIGHT = 0.15  # weight of the newest measurement
_EASY, _HARD = 1.5, 1.0  # the engine's speed, as a multiple of the demand, at which it takes everything, or nothing
_BUSY = 0.9  # busy share from which the kernels are the bottleneck
_LEAST = 0.25  # smallest share that is worth it: fewer images cost the engine as much time
_PAUSE = 4.0  # multiple of the recent batch time; longer is a pause, such as a validation, and is not counted
_HOPE = 1.01  # growth per batch of the engine's assumed speed while it is unused, up to the best one measured


class _Rate:
    """Bytes per second, averaged over recent batches."""

    def __init__(self) -> None:
        self.nbytes = self.seconds = 0.0

    def add(self, nbytes: float, seconds: float) -> None:
        if seconds > 0:
            self.nbytes += _WEIGHT * (nbytes - self.nbytes) if self.nbytes else nbytes
            self.seconds += _WEIGHT * (seconds - self.seconds) if self.seconds else seconds

    def add_wanted(self, nbytes: float, seconds: float) -> None:
        """As `add`, if the seconds may include a pause, which is cut off."""
        self.add(nbytes, min(seconds, _PAUSE * self.seconds) if self.seconds else seconds)

    @property
    def value(self) -> float:
        return self.nbytes / self.seconds if self.seconds else 0.0


class Sharing:
    """The engine uses none of the GPU's multiprocessors but is slow; the kernels are fast. So the engine takes
    everything if it is fast enough for the demand, as when training steps take longer; nothing if demand is higher and
    the kernels can meet it; otherwise the share with which both finish at the same time."""

    def __init__(self, engine: str, kernels: str, others: tuple[str, ...] = ()):
        self.engine, self.kernels = engine, kernels
        self.decoded: dict[str, int] = dict.fromkeys((engine, kernels, *others), 0)
        self.has_engine = False
        self._rates = {engine: _Rate(), kernels: _Rate()}
        self._best = 0.0  # best speed of the engine
        self._asked = _Rate()
        self._busy = _Rate()  # busy seconds per elapsed second
        self._last = 0.0
        self._lock = threading.Lock()

    @property
    def speeds(self) -> dict[str, float]:
        """Bytes per second of both, and of the demand."""
        return {name: rate.value for name, rate in (*self._rates.items(), ("asked for", self._asked))}

    @property
    def knows_both(self) -> bool:
        """Whether both speeds are measured."""
        return bool(self._rates[self.kernels].nbytes) and (not self.has_engine or bool(self._rates[self.engine].nbytes))

    def measured(self, name: str, nbytes: int, seconds: float, samples: int, between: float = 0.0) -> None:
        """Records that `name` was busy for `seconds` with `nbytes`, finished `between` seconds after its previous
        work."""
        with self._lock:
            self._rates[name].add(nbytes, seconds)
            if name == self.engine and seconds:
                self._best = max(self._best, nbytes / seconds)
            if between:
                self._busy.add_wanted(seconds, between)
            self.decoded[name] += samples

    def share(self, nbytes: float, now: float | None = None) -> float:
        """The share of the next batch, of `nbytes` bytes, for the engine; the kernels take the rest."""
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
    """A mask (n,) that selects a share of n images evenly, so that both parts have the same mix of sizes."""
    return np.diff(np.floor(np.arange(n + 1) * share)) > 0
