# SPDX-License-Identifier: Apache-2.0
"""Sources that the consumer's thread calls when it requests a batch."""

from __future__ import annotations

import time
from typing import Any

from ...core.errors import DataError, of_source
from ...core.source import Source
from ..plan import Plan
from .statistics import Statistics
from .workers import BUSY


class CalledSources:
    """These sources of a plan, in order of definition."""

    def __init__(self, plan: Plan, statistics: Statistics):
        self._statistics = statistics
        self._all = [(n, n.op) for n in plan.nodes if isinstance(n.op, Source) and n.op.called is not None]
        self.ended = False  # whether one of them has ended

    def call(self, production: Any, batch_size: int, iteration: int) -> bool:
        """Calls the sources for an iteration, up to one that ends; returns whether none has. If one raises, the others
        are called before the error is raised, so that all stay in step; the data of that iteration is discarded."""
        if not self._all or self.ended or production.ended:
            return not self.ended
        error: Exception | None = None
        others = BUSY.productions
        try:
            BUSY.productions = (*others, production)
            for node, op in self._all:
                begin = time.monotonic_ns()
                try:
                    if not op.called.call(op, batch_size, iteration):
                        self.ended = True
                        break
                except Exception as e:
                    error = error or (of_source(e, node.describe(str(e))) if isinstance(e, DataError) else e)
                finally:
                    self._statistics.sourced(node.number, time.monotonic_ns() - begin, True)
        finally:
            BUSY.productions = others
        if error is None:
            return not self.ended
        for _, op in self._all:
            op.called.discard(iteration)
        try:
            raise error
        finally:
            del error  # it refers to this frame

    def forget(self) -> None:
        """Drops data that was not used. Sources that can go back return to the state before it."""
        for _, op in self._all:
            state = op.state()
            op.called.clear()
            if state is not None:
                op.restore(state)
        self.ended = False
