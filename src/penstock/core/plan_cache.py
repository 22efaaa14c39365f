# SPDX-License-Identifier: Apache-2.0
"""Plans batches by programs: one native call instead of the rules of all operators.

After a few batches of one kind (types and layouts of the inputs) and size, the rules are traced. The resulting plan
is used for later batches. If a check of its program fails for a batch, such as one with a bad sample,
the rules run. Rules that can't be traced run for every batch; `Pipeline.stats` reports why."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Protocol

from .plan_memory import BatchContext, PlanMemory, TracedPlan
from .traced import Untraceable

_WAIT = 2  # batches of a kind and size before tracing, which takes longer than running the rules
_PATIENCE = 8  # consecutive batches for which a program failed before it is dropped
_ATTEMPTS = 8  # maximum number of failed tracing attempts for a kind and size
_KINDS = 256  # maximum number of kinds and sizes remembered
_KEPT_ROWS = 16384  # maximum total rows of the plans kept


def _rules_only() -> bool:
    """Whether `PENSTOCK_PLAN=rules` is set: rules then plan every batch, to find out whether a reused plan causes a
    wrong result."""
    how = os.environ.get("PENSTOCK_PLAN", "")
    if how not in ("", "rules"):
        raise ValueError(f"the environment variable PENSTOCK_PLAN may be 'rules' or not be set; it is '{how}'")
    return how == "rules"


class Planner(Protocol):
    """Runs rules, and makes plans from the arrays that rules or programs have filled."""

    def fill(self, to: PlanMemory, rows: Any) -> None:
        """Runs the rules to fill the arrays of a plan."""

    def plan_of(self, ctx: Any, at: PlanMemory) -> Any:
        """Makes the plan of a batch from these arrays."""


class _Kind:
    """State for batches of one kind and size."""

    __slots__ = ("attempts", "idle", "seen", "vain")

    def __init__(self) -> None:
        self.idle: list[TracedPlan] = []  # plans that are not in use
        self.seen = self.attempts = self.vain = 0


class PlanCache:
    """Plans the batches of one chain or decoder, and caches plans by kind and size."""

    def __init__(self, planner: Planner, is_traced: bool):
        """If not `is_traced`, rules plan all batches."""
        self._planner: Planner = weakref.proxy(planner)  # weak, as it owns this cache
        self.is_traced = is_traced and not _rules_only()
        self._kinds: dict[tuple, _Kind] = {}
        self.counts = {"by program": 0, "by rules": 0}  # number of batches planned
        self._counting = threading.Lock()
        self.untraceable: dict[str, int] = {}  # reasons why rules have to run, with counts

    def plan(self, kind: tuple | None, ctx: BatchContext) -> PlanMemory:
        """Returns the plan of a batch, with `made` set. Call `done` after running it. A `kind` of None is not
        traced."""
        if kind is not None and self.is_traced and ctx.n:
            try:
                traced = self.take(kind, ctx)
                if traced is not None:
                    return traced
            except MemoryError:  # the rules raise it again with a better message
                pass
        plan = PlanMemory()
        self._planner.fill(plan, ctx)
        plan.made = self._planner.plan_of(ctx, plan)
        return plan

    def done(self, plan: PlanMemory) -> None:
        """Returns a plan made by a program to the cache."""
        with self._counting:
            self.counts["by program" if isinstance(plan, TracedPlan) else "by rules"] += 1
        if isinstance(plan, TracedPlan):
            self._kind(plan.kind, plan.n).idle.append(plan)

    def programs(self) -> list[TracedPlan]:
        """One idle plan of each kind and size."""
        return [of.idle[-1] for of in list(self._kinds.values()) if of.idle]

    def take(self, kind: tuple, ctx: BatchContext) -> TracedPlan | None:
        """Plans a batch by a program; None if the rules have to plan it."""
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
        if of.vain >= _PATIENCE:  # perhaps the traced batch was not typical
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
        """Traces the rules for this batch and returns the plan; None if it is too early or not possible."""
        of.seen += 1
        if of.seen <= _WAIT:
            return None
        plan = TracedPlan(kind, ctx.n)
        try:
            self._planner.fill(plan, ctx)
            plan.finish()
            plan.made = self._planner.plan_of(ctx, plan)
        except Exception as e:  # other errors are raised again, with an explanation, when the rules run
            is_final = isinstance(e, Untraceable)
            of.attempts = _ATTEMPTS if is_final else of.attempts + 1
            if of.attempts >= _ATTEMPTS:
                why = str(e) if is_final else f"{type(e).__name__}: {e}"
                self.untraceable[why] = self.untraceable.get(why, 0) + 1
            return None
        self._forget(ctx.n)
        return plan

    def _forget(self, n: int) -> None:
        """Drops idle plans, oldest kinds first, if there are too many rows including a new plan of `n` rows."""
        kept = [of for of in list(self._kinds.values()) if of.idle]
        rows = n + sum(plan.n for of in kept for plan in of.idle)
        for of in kept:
            if rows > _KEPT_ROWS:
                rows -= sum(plan.n for plan in of.idle)
                of.idle.clear()
