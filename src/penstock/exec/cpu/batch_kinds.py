# SPDX-License-Identifier: Apache-2.0
"""For which batches programs are made (plan_cache.py)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT_EACH = 4  # programs of a kind, each for one batch at a time
_WAIT = 2  # batches of a kind before one is traced, which takes longer
_PATIENCE = 8  # batches one after the other for which a program was of no use
_NEVER = 1 << 30


def rules_only() -> bool:
    """Whether the environment asks that the operators' rules plan every batch (`PENSTOCK_PLAN=rules`): to find out
    whether a wrong result comes from a plan that was used again."""
    how = os.environ.get("PENSTOCK_PLAN", "")
    if how not in ("", "rules"):
        raise ValueError(f"the environment variable PENSTOCK_PLAN may be 'rules' or not be set; it is '{how}'")
    return how == "rules"


class Kinds:
    """Of which kinds of batches it pays to make programs, as it turns out; a kind begins with its number of rows.
    Programs are kept for kinds of so many `rows` in total, at most."""

    def __init__(self, most_rows: int):
        self._most_rows, self.rows = most_rows, 0
        self._seen: dict[tuple, int] = {}
        self._vain: dict[tuple, int] = {}
        self._traced_now: set[tuple] = set()

    @property
    def is_full(self) -> bool:
        return self.rows > self._most_rows

    def pays(self, kind: tuple) -> bool:
        """Whether it pays to trace a batch of a kind, which has come."""
        if kind in self._traced_now:
            return False
        seen = self._seen.get(kind, 0)
        if seen > _WAIT + _KEPT_EACH or (seen == 0 and self.is_full):
            return False
        if seen == 0:
            self.rows += kind[0]
        self._seen[kind] = seen + 1
        return seen >= _WAIT and self._vain.get(kind, 0) < _PATIENCE

    @contextmanager
    def tracing(self, kind: tuple) -> Iterator[None]:
        """While a batch is traced, no other one of its kind is: it would take both of them longer."""
        self._traced_now.add(kind)
        try:
            yield
        finally:
            self._traced_now.discard(kind)

    def used(self, kind: tuple, agrees: bool) -> bool:
        """A program of the kind was of use or not; says whether to go on with it."""
        self._vain[kind] = 0 if agrees else self._vain.get(kind, 0) + 1
        return self._vain[kind] < _PATIENCE

    def give_up(self, kind: tuple) -> None:
        """Says that batches of the kind can't be traced."""
        self._vain[kind] = _NEVER
