# SPDX-License-Identifier: Apache-2.0
"""Waiting for what takes long so that Ctrl-C is heard: Python's main thread handles signals only between calls of
native code, so another thread makes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_LONG_NS = 10_000_000  # to start a thread takes a hundredth of this


class Patience:
    """Runs work in the thread that asks for it, or, where the last took long, in a thread that it waits for. Whoever is
    interrupted while waiting goes on at once; what was begun is completed meanwhile."""

    def __init__(self) -> None:
        self._took = _LONG_NS  # of the first nothing is known

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
