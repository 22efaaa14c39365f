# SPDX-License-Identifier: Apache-2.0
"""Plans batches of a chain by programs: one native call instead of the rules of all operators.

When a few batches of one kind have come (number of samples, types and layouts of the inputs), the rules are traced for
the next one, and the program that comes of it plans those that follow. If a check of the program fails for a batch,
such as one with a bad sample, the rules run. Rules that can't be traced go on running; `Pipeline.stats` tells why."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from ...core import kernels
from ...core.program import Program
from ...core.traced import Untraceable
from ..context import Context
from .batch_kinds import Kinds, rules_only
from .compiled_plan import CompiledPlan
from .plan_trace import PlanTrace
from .wiring import inputs_of

if TYPE_CHECKING:
    from .chain import Chain, Link, _Segment


# Plans are kept for kinds of so many rows in total.
_KEPT_ROWS = 4096


class PlanCache:
    """The plans of one chain that are not in use, by the kind of batch."""

    def __init__(self, chain: Chain):
        self.chain: Chain = weakref.proxy(chain)  # whose these are
        made = {n.number for n in chain.nodes}
        self._reads = list(dict.fromkeys(e for n in chain.nodes for e in inputs_of(n) if e[0] not in made))
        self._drawing = [link.resolver for link in chain.links if link.draws]
        self._kinds = Kinds(_KEPT_ROWS)
        self._idle: dict[tuple, list[CompiledPlan]] = {}
        self.programs: dict[tuple, Program] = {}  # by the kind of batch
        self.untraceable: dict[str, int] = {}  # why rules have to run, and how often that was found

    @staticmethod
    def suit(links: list[Link]) -> bool:
        """Whether a chain of these can be traced at all."""
        return not rules_only() and all(link.op.replays for link in links)

    def run(self, ctx: Context, pool: kernels.Pool) -> bool:
        """Runs the chain by a program, or while it is traced; False if neither can be."""
        kind = self._kind(ctx)
        if kind is None:
            return False
        replay = self._planned(kind, ctx)
        if replay is None:
            if not self._kinds.pays(kind):
                return False
            with self._kinds.tracing(kind):
                return self._trace(kind, ctx, pool)
        replay.run(pool)
        self._idle[kind].append(replay)
        return True

    def segment(self, ctx: Context) -> CompiledPlan | None:
        """The plan of a batch by a trace, if there is one. Whoever has run it gives it back."""
        kind = self._kind(ctx)
        return None if kind is None else self._planned(kind, ctx)

    def take_back(self, segment: CompiledPlan | _Segment, ctx: Context) -> None:
        """Takes back what `segment` gave, or what was planned with the trace of `for_segment`, after it has run."""
        if isinstance(segment, CompiledPlan):
            self._idle[segment.kind].append(segment)
        elif segment.trace is not None and (kind := self._kind(ctx)) is not None:
            self._keep(kind, segment, segment.trace)

    def refused(self, ctx: Context, error: Untraceable) -> None:
        """Takes note that a batch that was to be planned with `for_segment` can't be traced."""
        if (kind := self._kind(ctx)) is not None:
            self._refused(kind, error)

    def for_segment(self, ctx: Context) -> PlanTrace | None:
        """To plan a batch with."""
        kind = self._kind(ctx)
        return PlanTrace() if kind is not None and self._kinds.pays(kind) else None

    def _planned(self, kind: tuple, ctx: Context) -> CompiledPlan | None:
        idle = self._idle.get(kind)
        try:
            replay = idle.pop()  # type: ignore[union-attr]
        except AttributeError:
            return None
        except IndexError:
            replay = self._given_back(kind)
            if replay is None:
                return None
        agrees = replay.plan(ctx)
        goes_on = self._kinds.used(kind, agrees)
        if agrees:
            return replay
        if goes_on:
            self._idle[kind].append(replay)
        return None

    def _given_back(self, kind: tuple) -> CompiledPlan | None:
        """A plan of a kind all of whose plans are in use, if it pays to wait for one."""
        return None

    def _kind(self, ctx: Context) -> tuple | None:
        """All that the rules may decide by, other than columns; None for what is not traced."""
        if not ctx.n:
            return None
        kind: list[Any] = [ctx.n, *(resolver.key for resolver in self._drawing)]
        for e in self._reads:
            batch = ctx.values[e]
            spec = batch.spec
            if spec.stored is not spec.shape:
                return None
            kind += spec.shape.shape[1], spec.dtype, spec.layout, batch.sources is None
        return tuple(kind)

    def _trace(self, kind: tuple, ctx: Context, pool: kernels.Pool) -> bool:
        trace = PlanTrace()
        try:
            segment = self.chain.run_by_rules(ctx, pool, trace)
        except Exception as e:  # which comes again if it is not about the program
            self._refused(kind, e)
            return False
        self._keep(kind, segment, trace)
        return True

    def _refused(self, kind: tuple, error: Exception) -> None:
        if isinstance(error, Untraceable):
            self.untraceable[str(error)] = self.untraceable.get(str(error), 0) + 1
            self._kinds.give_up(kind)

    def _keep(self, kind: tuple, segment: _Segment, trace: PlanTrace) -> None:
        if segment.launch is None or len(segment.calls) < len(self.chain.links):
            self._kinds.give_up(kind)
            return
        try:
            replay = CompiledPlan(self.chain, segment, trace, kind)
        except Untraceable as e:
            self._refused(kind, e)
            return
        self.programs[kind] = replay.program
        self._idle.setdefault(kind, []).append(replay)
