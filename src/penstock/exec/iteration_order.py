# SPDX-License-Identifier: Apache-2.0
"""Runs operators that call user code for one batch at a time, in order, although several batches are in flight."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class IterationOrder:
    """`enter` and `leave` bracket the run of an iteration; `in_turn` waits until earlier iterations have passed a
    node."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[int] = set()
        self._passed: dict[int, set[int]] = {}  # node -> running iterations that have passed it

    def enter(self, iteration: int) -> None:
        with self._changed:
            self._running.add(iteration)

    def leave(self, iteration: int) -> None:
        with self._changed:
            self._running.discard(iteration)
            for passed in self._passed.values():
                passed.discard(iteration)
            self._changed.notify_all()

    def clear(self) -> None:
        """Forgets dropped iterations."""
        with self._changed:
            self._running.clear()
            self._passed.clear()
            self._changed.notify_all()

    @contextmanager
    def in_turn(self, node: int, iteration: int) -> Iterator[None]:
        with self._changed:
            passed = self._passed.setdefault(node, set())
            self._changed.wait_for(lambda: all(i >= iteration or i in passed for i in self._running))
        try:
            yield
        finally:
            with self._changed:
                if iteration in self._running:
                    passed.add(iteration)
                self._changed.notify_all()
