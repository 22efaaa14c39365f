# SPDX-License-Identifier: Apache-2.0
"""Plans batches by programs: one native call instead of the rules of all operators.

When a few batches of one kind (types and layouts of the inputs) and size have come, the rules are traced, and the plan
that comes of it serves those that follow. If a check of its program fails for a batch, such as one with a bad sample,
the rules run. Rules that can't be traced go on running; `Pipeline.stats` tells why."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import Any, Protocol

from .plan_memory import BatchContext, PlanMemory, TracedPlan
from .traced import Untraceable

_WAIT = 2  # batches of a kind and size before it is traced, which takes longer than the rules
_PATIENCE = 8  # batches one after the other for which a program was of no use
_ATTEMPTS = 8  # how often tracing a kind and size may be in vain
_KINDS = 256  # kinds and sizes that are remembered
_KEPT_ROWS = 16384  # plans are kept for so many rows in total


def _rules_only() -> bool:
    """Whether the environment asks that the operators' rules plan every batch (`PENSTOCK_PLAN=rules`): to find out
    whether a wrong result comes from a plan that was used again."""
    how = os.environ.get("PENSTOCK_PLAN", "")
    if how not in ("", "rules"):
        raise ValueError(f"the environment variable PENSTOCK_PLAN may be 'rules' or not be set; it is '{how}'")
    return how == "rules"


class Planner(Protocol):
    """What has rules, and makes plans of what they or programs say."""

    def fill(self, to: PlanMemory, rows: Any) -> None:
        """Has the rules fill the arrays of a plan."""

    def plan_of(self, ctx: Any, at: PlanMemory) -> Any:
        """The plan of a batch in these arrays."""


class _Kind:
    """What is known of batches of one kind and size."""

    __slots__ = ("attempts", "idle", "seen", "vain")

    def __init__(self) -> None:
        self.idle: list[TracedPlan] = []  # plans that are not in use
        self.seen = self.attempts = self.vain = 0


class PlanCache:
    """Plans the batches of one chain or decoder, and keeps plans by kind and size."""

    def __init__(self, planner: Planner, is_traced: bool):
        """If it is not traced, rules plan all batches."""
        self._planner: Planner = weakref.proxy(planner)  # whose plans these are
        self.is_traced = is_traced and not _rules_only()
        self._kinds: dict[tuple, _Kind] = {}
        self.counts = {"by program": 0, "by rules": 0}  # how many batches were planned
        self._counting = threading.Lock()
        self.untraceable: dict[str, int] = {}  # why rules have to run, and how often that was found

    def plan(self, kind: tuple | None, ctx: BatchContext) -> PlanMemory:
        """The plan of a batch, `made`. Whoever has run it is `done` with it. A `kind` of None is not traced."""
        if kind is not None and self.is_traced and ctx.n:
            with contextlib.suppress(MemoryError):  # of which the rules say what it was for
                traced = self.take(kind, ctx)
                if traced is not None:
                    return traced
        plan = PlanMemory()
        self._planner.fill(plan, ctx)
        plan.made = self._planner.plan_of(ctx, plan)
        return plan

    def done(self, plan: PlanMemory) -> None:
        """Keeps a plan of a program for the next batch."""
        with self._counting:
            self.counts["by program" if isinstance(plan, TracedPlan) else "by rules"] += 1
        if isinstance(plan, TracedPlan):
            self._kind(plan.kind, plan.n).idle.append(plan)

    def programs(self) -> list[TracedPlan]:
        """A plan of each kind and size, of those that are not in use."""
        return [of.idle[-1] for of in list(self._kinds.values()) if of.idle]

    def take(self, kind: tuple, ctx: BatchContext) -> TracedPlan | None:
        """The plan of a batch by a program; None if rules have to make it."""
        of = self._kind(kind, ctx.n)
        if of.attempts >= _ATTEMPTS:
            return None
        try:
            plan = of.idle.pop()
        except IndexError:
            return self._traced(of, kind, ctx)
        if plan.refill(ctx):
            of.vain = 0
            return plan
        of.vain += 1
        of.idle.append(plan)
        if of.vain >= _PATIENCE:  # the batch that was traced was perhaps an odd one
            of.attempts += 1
            of.idle.clear()
            of.vain = of.seen = 0
        return None

    def _kind(self, kind: tuple, n: int) -> _Kind:
        of = self._kinds.get((kind, n))
        if of is None:
            if len(self._kinds) >= _KINDS:
                self._kinds.pop(next(iter(list(self._kinds))), None)
            of = self._kinds.setdefault((kind, n), _Kind())
        return of

    def _traced(self, of: _Kind, kind: tuple, ctx: BatchContext) -> TracedPlan | None:
        """A new plan, made by tracing the rules for this batch."""
        of.seen += 1
        if of.seen <= _WAIT:
            return None
        plan = TracedPlan(kind, ctx.n)
        try:
            self._planner.fill(plan, ctx)
            plan.finish()
            plan.made = self._planner.plan_of(ctx, plan)
        except Exception as e:  # which the rules raise again, with an explanation, if it is not about the program
            is_final = isinstance(e, Untraceable)
            of.attempts = _ATTEMPTS if is_final else of.attempts + 1
            if of.attempts >= _ATTEMPTS:
                why = str(e) if is_final else f"{type(e).__name__}: {e}"
                self.untraceable[why] = self.untraceable.get(why, 0) + 1
            return None
        self._forget(ctx.n)
        return plan

    def _forget(self, n: int) -> None:
        """Drops the plans that are not in use of the kinds that came first, if there are too many besides a new one."""
        kept = [of for of in list(self._kinds.values()) if of.idle]
        rows = n + sum(plan.n for of in kept for plan in of.idle)
        for of in kept:
            if rows > _KEPT_ROWS:
                rows -= sum(plan.n for plan in of.idle)
                of.idle.clear()
