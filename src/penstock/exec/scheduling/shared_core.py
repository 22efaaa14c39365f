# SPDX-License-Identifier: Apache-2.0
"""One core for threads that take turns at Python's lock. Of two of them one can run at a time anyway; on cores of their
own each finds what the other has changed in the caches of another core, and is woken from the depth in which an idle
core sleeps."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence

_LEAST_CORES = 4  # that the process may use: with fewer there is none to spare
# So many batches run wherever the system puts the threads, which knows what else is at work; then they stay for a while
# on the core where the thread that has called is by then.
_FREE_BATCHES = 32
_STAY_SECONDS = 1.0
_FREQUENT_SECONDS = 0.32  # in which the batches have to come: there is nothing to gain otherwise


class SharedCore:
    """Keeps threads on one core, if that is `allowed`. Called by one of them."""

    def __init__(self, allowed: bool) -> None:
        self._masks: dict[int, set[int]] = {}  # what threads might use before they were brought together
        self._batches, self._since = 0, 0.0
        # Without the lock they don't take turns.
        locked = getattr(sys, "_is_gil_enabled", lambda: True)()
        self._possible = allowed and locked and hasattr(os, "sched_setaffinity")

    def ran(self, threads: Sequence[threading.Thread]) -> None:
        """Tells that the calling thread has run a batch to which these threads contribute."""
        if not self._possible:
            return
        now = time.monotonic()
        if self._masks:
            if now - self._since > _STAY_SECONDS:
                self.leave()
            return
        if not self._batches:
            self._since = now
        self._batches += 1
        if self._batches >= _FREE_BATCHES:
            self._batches = 0
            if now - self._since < _FREQUENT_SECONDS:
                self._gather(threads)
                self._since = now

    def _gather(self, threads: Sequence[threading.Thread]) -> None:
        numbers = [t.native_id for t in threads if t.native_id is not None and t.is_alive()]
        try:
            here = ctypes.PyDLL(None).sched_getcpu()
            for number in numbers:
                mask = os.sched_getaffinity(number)
                if len(mask) >= _LEAST_CORES and here in mask:
                    os.sched_setaffinity(number, {here})
                    self._masks[number] = mask
        except (OSError, AttributeError):  # not allowed, or not known here
            self._possible = False
            self.leave()

    def leave(self) -> None:
        """Lets the threads run anywhere again."""
        masks, self._masks = self._masks, {}  # others may call this, too
        for number, mask in masks.items():
            try:
                os.sched_setaffinity(number, mask)
            except OSError:  # it has ended
                pass
