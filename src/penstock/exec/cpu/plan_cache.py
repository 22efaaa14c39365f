# SPDX-License-Identifier: Apache-2.0
"""Plans batches by programs: one native call instead of the rules of all operators.

When a few batches of one kind have come (types and layouts of the inputs), the rules are traced, and the program that
comes of it plans those that follow, of any number of samples. If a check of the program fails for a batch, such as one
with a bad sample, the rules run. Rules that can't be traced go on running; `Pipeline.stats` tells why."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from ...core.sizes import ForAnyNumber
from ...core.traced import Untraceable
from ..context import Context, ScopedContext
from .plan_trace import TracedPlan
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


class Planned(ABC):
    """A plan for batches of one kind with n samples, for one at a time."""

    program: ForAnyNumber[TracedPlan]
    kind: tuple
    n: int

    @abstractmethod
    def plan(self, ctx: Context) -> bool:
        """Whether the plan is of use for a batch; it is then in place."""


_Plan = TypeVar("_Plan", bound=Planned)


class _Kind(Generic[_Plan]):
    """What is known of batches of one kind."""

    __slots__ = ("attempts", "came", "idle", "key", "program", "seen", "vain")

    def __init__(self, key: tuple):
        self.key = key
        self.program: ForAnyNumber[TracedPlan] | None = None
        self.idle: dict[int, list[_Plan]] = {}  # plans that are not in use, by the number of samples
        self.seen = self.attempts = self.vain = 0
        self.came: set[int] = set()  # numbers of frames


class PlanCache(ABC, Generic[_Plan]):
    """The programs of one chain or decoder, by the kind of batch, and their plans that are not in use."""

    def __init__(self, reads: Iterable[Edge]):
        """`reads` is all that the rules get."""
        self._reads = tuple(reads)
        self._kinds: dict[tuple, _Kind[_Plan]] = {}
        self.untraceable: dict[str, int] = {}  # why rules have to run, and how often that was found

    def programs(self) -> list[ForAnyNumber[TracedPlan]]:
        return [k.program for k in list(self._kinds.values()) if k.program is not None]

    @abstractmethod
    def _trace(self, ctx: Context) -> TracedPlan:
        """What the rules make of a batch; raises Untraceable if no program can do that."""

    @abstractmethod
    def _bound(self, plan: TracedPlan, ctx: Context) -> _Plan:
        """The plan of as many samples as a batch has."""

    def take(self, kind: tuple | None, ctx: Context | None) -> _Plan | None:
        """The plan of a batch, in place; None if rules have to make it. Whoever has run it gives it back."""
        if kind is None or ctx is None:
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
        if plan.plan(ctx):
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

    def give_back(self, plan: _Plan) -> None:
        """Keeps a plan for the next batch."""
        kind = self._kinds[plan.kind]
        if plan.program is kind.program:
            kind.idle.setdefault(plan.n, []).append(plan)

    def _new(self, kind: _Kind[_Plan], ctx: Context) -> _Plan | None:
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
                kind.program = program
            if is_rare:
                return None
            plan = self._bound(program.of(ctx.n), ctx)
        except Untraceable as e:
            kind.vain = _NEVER
            self.untraceable[str(e)] = self.untraceable.get(str(e), 0) + 1
            return None
        plan.program, plan.kind, plan.n = program, kind.key, ctx.n  # not `kind` itself, which refers to its plans
        kept = [(k, n, plans) for k in list(self._kinds.values()) for n, plans in list(k.idle.items())]
        rows = ctx.n + sum(n * len(plans) for _, n, plans in kept)
        for k, n, plans in kept:
            if rows > _KEPT_ROWS:
                rows -= n * len(plans)
                k.idle.pop(n, None)
        return plan

    def _traced(self, kind: _Kind[_Plan], ctx: Context) -> ForAnyNumber[TracedPlan] | None:
        """Traces a batch with some of its samples twice, so that it has three numbers of them, each above one."""
        kind.seen += 1
        if kind.seen != _WAIT + 1:
            return None
        kind.attempts += 1
        sizes, plans = (ctx.n + 1, ctx.n + 2, 2 * ctx.n + 3), []
        for size in sizes:
            part = ScopedContext(ctx, np.arange(size) % ctx.n)
            part.values = {e: ctx.values[e].take(part.within) for e in self._reads}
            part.gpu = ctx.gpu
            try:
                plans.append(self._trace(part))
            except Untraceable:
                raise
            except Exception as e:  # which comes again if it is not about the program
                if kind.attempts < _ATTEMPTS:
                    kind.seen = _WAIT
                    return None
                raise Untraceable(f"{type(e).__name__}: {e}") from e
        return ForAnyNumber(plans, sizes)
