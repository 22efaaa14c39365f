# SPDX-License-Identifier: Apache-2.0
"""Runs threads that take turns holding the GIL on one core. Only one can run at a time anyway; on separate cores, each
finds the data changed by the other in another core's cache, and wakes from an idle core's deep sleep state."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Sequence

from .constants import SCHEDULING


class SharedCore:
    """Keeps threads on one core if `allowed`. Called by one of these threads."""

    def __init__(self, allowed: bool) -> None:
        self._masks: dict[int, set[int]] = {}  # the threads' affinity masks before
        self._batches, self._since = 0, 0.0
        # Without the GIL they don't take turns.
        locked = getattr(sys, "_is_gil_enabled", lambda: True)()
        self._possible = allowed and locked and hasattr(os, "sched_setaffinity")

    def ran(self, threads: Sequence[threading.Thread]) -> None:
        """Reports that the calling thread has run a batch to which these threads contribute."""
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
        except (OSError, AttributeError):  # not permitted or not supported
            self._possible = False
            self.leave()

    def leave(self) -> None:
        """Restores the threads' affinity."""
        masks, self._masks = self._masks, {}  # other threads may call this too
        for number, mask in masks.items():
            try:
                os.sched_setaffinity(number, mask)
            except OSError:  # the thread has ended
                pass
