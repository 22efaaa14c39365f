# SPDX-License-Identifier: Apache-2.0
"""The trainer's side of a batch: asks the crew for it, and makes it itself where nobody else does."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..core.batch import Batch
from ..core.picks import Picks
from ..core.source import Loading
from ..exec.context import Context
from ..exec.plan import Plan
from ..exec.scheduling.policy import Policy
from ..exec.scheduling.producer import Loaded, Producer, Started
from ..exec.scheduling.statistics import Statistics
from .crew import Asked, Crew
from .order import raised

_AWAY = -1  # in the place of the number of a node


class _Away(Loading):
    """A batch that a worker makes."""

    def __init__(self, crew: Crew, asked: Asked):
        self.asked, self._crew = asked, crew

    def __del__(self) -> None:  # of batches that are dropped, nobody takes what comes
        if self.asked.answer is None:
            self._crew.forget(self.asked)


class CrewProducer(Producer):
    """Has a crew make the batches."""

    is_away = True

    def __init__(self, crew: Crew, plan: Plan, policy: Policy, num_threads: int, statistics: Statistics):
        super().__init__(plan, policy, num_threads, statistics.record)
        self.crew, self._statistics = crew, statistics
        self._nodes = {n.number: n for n in plan.nodes}
        self._itself = Producer(plan, policy, num_threads, statistics.record)
        weakref.finalize(self, Crew.close, crew)

    def begin(self, ctx: Context, picks: dict[int, Picks]) -> None:
        asked = self.crew.ask(ctx.n, ctx.epoch, ctx.position, ctx.iteration, picks)
        ctx.loading[_AWAY] = _Away(self.crew, asked)

    def load(self, ctx: Context, picks: dict[int, Picks], attempt: int = 0) -> Loaded:
        away: Any = ctx.loading.get(_AWAY)
        if away is None:
            self.begin(ctx, picks)
            away = ctx.loading[_AWAY]
        if self.crew.wait(away.asked):
            return ctx, picks, attempt
        ctx.loading.clear()
        return self._itself.load(ctx, picks, attempt)

    def start(self, ctx: Context) -> Started:
        return self._itself.start(ctx) if _AWAY not in ctx.loading else None  # type: ignore[return-value]

    def produce(
        self, ctx: Context, picks: dict[int, Picks], attempt: int = 0, started: Started | None = None
    ) -> tuple[list[Batch], np.ndarray]:
        away: Any = ctx.loading.pop(_AWAY, None)
        if away is None:
            return self._itself.produce(ctx, picks, attempt, started)
        asked, answer = away.asked, away.asked.answer
        for bad, iteration in answer.bad:
            named = {row: (self._nodes[number], reason, source) for row, (number, reason, source) in bad.items()}
            self.policy.record(named, iteration)
        for iteration, n, timings in answer.timings:
            done = Context(n, ctx.epoch[:n], ctx.position[:n], iteration)
            done.timings = timings
            self._statistics.record(done)
        if answer.error is not None:
            raise raised(answer.error, asked.worker)
        return asked.batches, answer.rows

    def stop_waiting(self) -> None:
        self.crew.close()
