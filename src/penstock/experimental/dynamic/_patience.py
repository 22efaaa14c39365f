# SPDX-License-Identifier: Apache-2.0
"""Keeps Ctrl-C responsive during long native calls: Python's main thread handles signals only between native calls, so
another thread makes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LONG_NS = 10_000_000  # starting a thread takes 1% of this


class Patience:
    """Runs work in the calling thread or, if the last work took long, in another thread and waits for it. An interrupt
    ends the waiting immediately; the other thread completes the work."""

    def __init__(self) -> None:
        self._took = _LONG_NS  # unknown for the first work

    def run(self, work: Callable[[], None]) -> None:
        begin = time.monotonic_ns()
        try:
            if self._took < _LONG_NS or threading.current_thread() is not threading.main_thread():
                work()
            else:
                _run_apart(work)
        finally:
            self._took = time.monotonic_ns() - begin


def _run_apart(work: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as e:
            errors.append(e)

    thread = threading.Thread(target=run, name="penstock-dynamic-work", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
