# SPDX-License-Identifier: Apache-2.0
"""Small batches of a GPU, several of which are made as one: what a batch costs the host is much the same for any size.
Samples don't depend on which others are made with them, so nobody sees it but by the speed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...core.batch import Batch
from ...core.picks import Picks
from ..context import Context
from ..plan import Plan
from .constants import SCHEDULING
from .workers import Ticket


class MergedTicket(Ticket):
    """Several iterations, in order, that are made as one batch."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Ticket]):
        super().__init__(parts[0].index, sum(p.batch_size for p in parts))
        self._parts = tuple(parts)

    @property
    def parts(self) -> Sequence[Ticket]:
        return self._parts

    @property
    def is_dropped(self) -> bool:
        return all(p.dropped for p in self._parts)

    def join(self) -> None:
        contexts = [p.context for p in self._parts if p.context is not None]
        epoch, position = (np.concatenate([getattr(c, name) for c in contexts]) for name in ("epoch", "position"))
        self.context = Context(len(epoch), epoch, position, self.index, batches=len(contexts))
        self.picks = {
            source: Picks.concatenate([p.picks[source] for p in self._parts]) for source in self._parts[0].picks
        }

    def hand_out(self, outputs: list[Batch], rows: np.ndarray) -> None:
        ends = np.cumsum([0, *(p.context.n for p in self._parts if p.context is not None)]).tolist()
        for part, (begin, end) in zip(self._parts, pairwise(ends)):
            part.hand_out([_part(b, begin, end) for b in outputs], rows[: end - begin])

    def finish(self) -> None:
        for part in self._parts:
            part.closed, part.context = self.closed, None
            part.finish()


class Merging:
    """How many batches are made together: more and more, up to a limit, while the consumer waits for them."""

    def __init__(self, plan: Plan, is_away: bool = False):
        """`is_away`: others make the batches, each by itself."""
        self._session = plan.session if not is_away and _can_be_joined(plan) else None
        self.size = 1
        self._batches = self._waited_ns = 0
        self._since = time.monotonic_ns()

    def waited(self, ns: int, batch_size: int) -> None:
        """Tells how long the consumer has waited for a batch."""
        most = min(SCHEDULING.most_merged_samples // max(batch_size, 1), SCHEDULING.most_merged_batches)
        if self._session is None or 2 * self.size > most:
            return
        self._batches += 1
        self._waited_ns += ns
        if self._batches < SCHEDULING.merges_watched * self.size:
            return
        now = time.monotonic_ns()
        waits = self._waited_ns > SCHEDULING.waiting_share * (now - self._since)
        if waits and self._session.has_spare_memory:
            self.size *= 2
        self._batches = self._waited_ns = 0
        self._since = now


def _can_be_joined(plan: Plan) -> bool:
    """Whether samples depend on nothing but their own picks, and nobody sees which batches are made at a time."""
    sources = [plan.source_op(n) for n in plan.sources]
    return (
        plan.session is not None
        and not (plan.mixes_samples or plan.runs_users_code or plan.batches_read_ahead)
        and bool(sources)
        and all(op.loads_ahead and not op.sets_batch_size and op.feeding is None for op in sources)
        and all(n.device == "cpu" and not n.args and plan.source_op(n).state() is not None for n in plan.sources)
    )


def _part(batch: Batch, begin: int, end: int) -> Batch:
    """Some samples, as they would be had they been made by themselves: one behind the other if they have one shape."""
    part = batch.part(begin, end)
    return part.packed_copy() if part.spec.is_dense and not part.is_packed else part
