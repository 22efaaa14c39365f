# SPDX-License-Identifier: Apache-2.0
"""Plans batches by programs: one native call instead of the rules of all operators.

When a few batches of one kind have come (types and layouts of the inputs), the rules are traced, and the program that
comes of it plans those that follow, of any number of samples. If a check of the program fails for a batch, such as one
with a bad sample, the rules run. Rules that can't be traced go on running; `Pipeline.stats` tells why."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Protocol

import numpy as np

from ...core.batch import Spec
from ...core.sizes import ForAnyNumber
from ...core.traced import Untraceable
from ..context import Context, ScopedContext
from .plan_memory import BoundPlan, PlanMemory
from .plan_trace import PlanTrace, TracedPlan
from .wiring import Edge

_WAIT = 2  # batches of a kind before it is traced, which takes longer
_PATIENCE = 8  # batches one after the other for which a program was of no use
_ATTEMPTS = 8  # how often a kind is traced
_KINDS = 256  # that are counted
_KEPT_ROWS = 16384  # plans are kept for so many rows in total
_NEVER = 1 << 30


def rules_only() -> bool:
    """Whether the environment asks that the operators' rules plan every batch (`PENSTOCK_PLAN=rules`): to find out
    whether a wrong result comes from a plan that was used again."""
    how = os.environ.get("PENSTOCK_PLAN", "")
    if how not in ("", "rules"):
        raise ValueError(f"the environment variable PENSTOCK_PLAN may be 'rules' or not be set; it is '{how}'")
    return how == "rules"


class Planner(Protocol):
    """What has rules, and makes plans of what they or programs say."""

    def trace(self, ctx: Context, trace: PlanTrace) -> Mapping[Edge, Spec]:
        """Has the rules run with traced columns."""

    def plan_of(self, ctx: Context, at: PlanMemory) -> Any:
        """The plan of a batch in these arrays. Raises KeyError or ValueError if it is not one for other batches."""


class _Kind:
    """What is known of batches of one kind."""

    __slots__ = ("attempts", "came", "idle", "key", "program", "seen", "tracing", "vain")

    def __init__(self, key: tuple):
        self.key = key
        self.program: ForAnyNumber[TracedPlan] | None = None
        self.idle: dict[int, list[BoundPlan]] = {}  # plans that are not in use, by the number of samples
        self.seen = self.attempts = self.vain = 0
        self.came: set[int] = set()  # numbers of frames
        self.tracing = threading.Lock()  # one batch at a time


class PlanCache:
    """The programs of one chain or decoder, by the kind of batch, and their plans that are not in use."""

    def __init__(self, planner: Planner, reads: Iterable[Edge]):
        """`reads` is all that the rules get."""
        self._planner: Planner = weakref.proxy(planner)  # whose plans these are
        self._reads = tuple(dict.fromkeys(reads))
        self._kinds: dict[tuple, _Kind] = {}
        self.untraceable: dict[str, int] = {}  # why rules have to run, and how often that was found

    def programs(self) -> list[ForAnyNumber[TracedPlan]]:
        return [k.program for k in list(self._kinds.values()) if k.program is not None]

    def take(self, kind: tuple | None, ctx: Context) -> BoundPlan | None:
        """The plan of a batch, `made`; None if rules have to make it. Whoever has run it gives it back."""
        if kind is None:
            return None
        of = self._kinds.get(kind)
        if of is None:
            if len(self._kinds) > _KINDS:
                return None
            of = self._kinds.setdefault(kind, _Kind(kind))
        if of.vain >= _PATIENCE or not ctx.n:
            return None
        try:
            plan = of.idle[ctx.n].pop()
        except LookupError:
            made = self._new(of, ctx)
            if made is None:
                return None
            plan = made
        if self._made(plan, ctx):
            of.vain = 0
            return plan
        of.vain += 1
        if of.vain < _PATIENCE:
            self.give_back(plan)
        elif of.attempts < _ATTEMPTS:  # the batch that was traced was perhaps an odd one
            of.program = None
            of.idle.clear()
            of.vain = of.seen = 0
        return None

    def _made(self, plan: BoundPlan, ctx: Context) -> bool:
        """Whether a plan is of use for a batch; it is then made."""
        if not plan.run(ctx):
            return False
        if plan.made is None or not plan.made.fits(ctx):
            try:
                plan.made = self._planner.plan_of(ctx, plan.at)
            except (KeyError, ValueError):  # it needs other launches; the rules run, and say if something is wrong
                return False
        return True

    def give_back(self, plan: BoundPlan) -> None:
        """Keeps a plan for the next batch."""
        kind = self._kinds[plan.kind]
        if plan.program is kind.program:
            kind.idle.setdefault(plan.n, []).append(plan)

    def _new(self, kind: _Kind, ctx: Context) -> BoundPlan | None:
        """A plan for as many samples as a batch has; None if it has none, or not yet."""
        # Batches of sequences seldom have the same number of frames, and a plan takes longer to make than rules to run.
        is_rare = ctx.frames is not None and ctx.n not in kind.came
        if is_rare:
            if len(kind.came) >= _KINDS:
                kind.came.clear()
            kind.came.add(ctx.n)
        program = kind.program
        try:
            if program is None:
                program = self._traced(kind, ctx)
                if program is None:
                    return None
            if is_rare:
                return None
            plan = BoundPlan(program, kind.key, ctx.n)
        except Untraceable as e:
            kind.vain = _NEVER
            self.untraceable[str(e)] = self.untraceable.get(str(e), 0) + 1
            return None
        kept = [(k, n, plans) for k in list(self._kinds.values()) for n, plans in list(k.idle.items())]
        rows = ctx.n + sum(n * len(plans) for _, n, plans in kept)
        for k, n, plans in kept:
            if rows > _KEPT_ROWS:
                rows -= n * len(plans)
                k.idle.pop(n, None)
        return plan

    def _traced(self, kind: _Kind, ctx: Context) -> ForAnyNumber[TracedPlan] | None:
        """Traces a batch with some of its samples twice, so that it has three numbers of them, each above one."""
        kind.seen += 1
        if kind.seen <= _WAIT or not kind.tracing.acquire(blocking=False):
            return None
        try:
            if kind.program is None:  # else another thread has just been through with it
                kind.program = self._trace(kind, ctx)
            return kind.program
        finally:
            kind.tracing.release()

    def _trace(self, kind: _Kind, ctx: Context) -> ForAnyNumber[TracedPlan] | None:
        kind.attempts += 1
        sizes, plans = (ctx.n + 1, ctx.n + 2, 2 * ctx.n + 3), []
        for size in sizes:
            part = ScopedContext(ctx, np.arange(size) % ctx.n)
            part.values = {e: ctx.values[e].take(part.within) for e in self._reads}
            part.gpu = ctx.gpu
            try:
                with closing(PlanTrace()) as trace:
                    plans.append(trace.traced(self._planner.trace(part, trace)))
            except Untraceable:
                raise
            except Exception as e:  # which comes again if it is not about the program
                if kind.attempts < _ATTEMPTS:
                    return None
                raise Untraceable(f"{type(e).__name__}: {e}") from e
        return ForAnyNumber(plans, sizes)
