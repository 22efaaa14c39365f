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

from .constants import SCHEDULING


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
            if now - self._since > SCHEDULING.shared_core_stay:
                self.leave()
            return
        if not self._batches:
            self._since = now
        self._batches += 1
        if self._batches >= SCHEDULING.shared_core_free_batches:
            self._batches = 0
            if now - self._since < SCHEDULING.shared_core_frequent:
                self._gather(threads)
                self._since = now

    def _gather(self, threads: Sequence[threading.Thread]) -> None:
        numbers = [t.native_id for t in threads if t.native_id is not None and t.is_alive()]
        try:
            here = ctypes.PyDLL(None).sched_getcpu()
            for number in numbers:
                mask = os.sched_getaffinity(number)
                if len(mask) >= SCHEDULING.shared_core_least and here in mask:
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
