# SPDX-License-Identifier: Apache-2.0
"""Time per operator: thread time in kernels, Python time around them; and the time the consumer waited."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from typing import NamedTuple

from ...core.clocks import Clocks
from ...core.kernels import library
from ..context import Context, Timing

_KEPT_BATCHES = 256  # kept for the trace
_MOST_PENDING = 64


class Totals(NamedTuple):
    """Sums since the pipeline was built; dictionaries are by operator number."""

    samples: int
    batches: int
    waited_ns: int
    native_ns: dict[int, int]
    python_ns: dict[int, int]
    load_ns: dict[int, int]


_NOTHING = Totals(0, 0, 0, {}, {}, {})


class Statistics:
    """Sums over all batches, and the timings of the last ones."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._earlier = _NOTHING  # sums before the last reset
        self._start()

    def reset(self) -> None:
        with self.lock:
            self._earlier = self._totals()
            self._start()

    def totals(self) -> Totals:
        """The sums including those before `reset`: they never decrease."""
        with self.lock:
            return self._totals()

    def _totals(self) -> Totals:
        self.settle()
        e = self._earlier
        return Totals(
            e.samples + self.samples,
            e.batches + self.batches,
            e.waited_ns + self.wait_ns + self.called_ns,
            _added(e.native_ns, self.kernel_ns),
            _added(e.python_ns, self.python_ns),
            _added(e.load_ns, self.load_ns, self.source_ns),
        )

    def _start(self) -> None:
        self.kernel_ns: dict[int, int] = {}
        self.python_ns: dict[int, int] = {}
        self.load_ns: dict[int, int] = {}
        # Time in the user's own sources, and the part of it in the consumer's thread.
        self.source_ns: dict[int, int] = {}
        self.called_ns = 0
        self.samples = self.batches = self.wait_ns = 0
        self._worked = Clocks()  # nanoseconds in Python, native calls and the driver
        self.started = self.last = time.monotonic_ns()
        self._pending: list[Timing] = []  # not yet in the sums
        self.recent: deque[tuple[int, list[Timing]]] = deque(maxlen=_KEPT_BATCHES)

    def record(self, ctx: Context) -> None:
        """Adds the timings of a finished pass."""
        timings, ctx.timings = ctx.timings, []
        with self.lock:
            self.recent.append((ctx.iteration, timings))
            self.samples += ctx.n
            self.batches += ctx.batches
            self.last = time.monotonic_ns()
            self._pending += timings
            if len(self._pending) >= _MOST_PENDING:
                self.settle()

    def settle(self) -> None:
        """Updates the sums; requires `lock`. Many timings at once cost less each."""
        for t in self._pending:
            # Planning time of a chain is counted for its first operator.
            sums, first = (self.load_ns if t.kind == "load" else self.python_ns), t.numbers[0]
            sums[first] = sums.get(first, 0) + t.native - t.begin
            if t.outcome is not None:
                for number, ns in zip(t.numbers, t.outcome.step_ns.tolist()):
                    self.kernel_ns[number] = self.kernel_ns.get(number, 0) + ns
        self._pending.clear()

    def worked(self, since: ctypes.Array) -> None:
        """Adds the CPU time of this thread since `since` (from `clocks`), which begins anew. Python's share is the time
        outside of native calls; batches are processed by other threads."""
        library().add_clocks(since, self._worked)

    @property
    def cpu_ns(self) -> int:
        """CPU time in Python."""
        return int(self._worked[0])

    @property
    def native_ns(self) -> int:
        """CPU time in long native calls."""
        return int(self._worked[1])

    @property
    def driver_ns(self) -> int:
        """CPU time in calls of the GPU driver."""
        return int(self._worked[2])

    def sourced(self, number: int, ns: int, by_consumer: bool) -> None:
        """Adds the time a user's source took for a batch."""
        with self.lock:
            self.source_ns[number] = self.source_ns.get(number, 0) + ns
            self.called_ns += ns * by_consumer

    def waited(self, ns: int) -> None:
        """Adds the time the consumer waited. Called by one thread at a time."""
        self.wait_ns += ns


def _added(*sums: dict[int, int]) -> dict[int, int]:
    total: dict[int, int] = {}
    for each in sums:
        for number, ns in each.items():
            total[number] = total.get(number, 0) + ns
    return total
