# SPDX-License-Identifier: Apache-2.0
"""Merges several small GPU batches into one, as the host cost of a batch hardly depends on its size. Samples do not
depend on the others in their batch, so the result is the same."""

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
    """Several consecutive iterations that are made as one batch."""

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
    """The number of batches merged: increased, up to a limit, while the consumer waits."""

    def __init__(self, plan: Plan, is_away: bool = False):
        """`is_away`: workers make the batches, which are not merged."""
        self._session = plan.session if not is_away and _can_be_joined(plan) else None
        self.size = 1
        self._batches = self._waited_ns = 0
        self._since = time.monotonic_ns()

    def waited(self, ns: int, batch_size: int) -> None:
        """Records how long the consumer waited for a batch."""
        if self._session is None:
            return
        most = min(SCHEDULING.most_merged_samples // max(batch_size, 1), SCHEDULING.most_merged_batches)
        if 2 * self.size > most:
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
    """Whether samples depend only on their own picks, and merging has no visible effect."""
    sources = [plan.source_op(n) for n in plan.sources]
    return (
        plan.session is not None
        and not (plan.mixes_samples or plan.runs_users_code or plan.batches_read_ahead)
        and bool(sources)
        and all(op.loads_ahead and not op.sets_batch_size and op.feeding is None for op in sources)
        and all(n.device == "cpu" and not n.args and plan.source_op(n).state() is not None for n in plan.sources)
    )


def _part(batch: Batch, begin: int, end: int) -> Batch:
    """Samples `begin` to `end`, as if made in a batch of their own: packed if they have one shape."""
    part = batch.part(begin, end)
    return part.packed_copy() if part.spec.is_dense and not part.is_packed else part
