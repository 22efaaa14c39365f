# SPDX-License-Identifier: Apache-2.0
"""Where the time goes, per operator: thread time in kernels, Python time around them, and what the consumer waited."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

from .context import Context


class Statistics:
    """Sums over all batches; with `tracing`, every span is kept for `Pipeline.trace`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tracing = False
        self.reset()

    def reset(self) -> None:
        with self.lock:
            self.kernel_ns: dict[int, int] = {}
            self.python_ns: dict[int, int] = {}
            self.samples = self.batches = self.wait_ns = 0
            self.started = time.monotonic_ns()
            self.last = self.started
            self.events: list[tuple] = []

    def record(self, ctx: Context) -> None:
        """Adds the timings of a finished pass."""
        with self.lock:
            for numbers, begin, native, end, spans, threads in ctx.timings:
                if spans is None:
                    self.python_ns[numbers[0]] = self.python_ns.get(numbers[0], 0) + end - begin
                else:
                    # Planning a chain is one effort; it is booked on the chain's first operator.
                    self.python_ns[numbers[0]] = self.python_ns.get(numbers[0], 0) + native - begin
                    for number, ns in zip(numbers, (spans["end"] - spans["begin"]).sum(axis=0).tolist()):
                        self.kernel_ns[number] = self.kernel_ns.get(number, 0) + ns
                if self.tracing:
                    self.events.append((ctx.iteration, numbers, begin, native, end, spans, threads))
            self.samples += ctx.n
            self.batches += 1
            self.last = time.monotonic_ns()
        ctx.timings = []

    @contextmanager
    def waiting(self):
        begin = time.monotonic_ns()
        yield
        with self.lock:
            self.wait_ns += time.monotonic_ns() - begin
