# SPDX-License-Identifier: Apache-2.0
"""What the user's source gave in the user's thread, until the threads of the pipeline take it."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from ._by_sample import Made


class _Given(NamedTuple):
    iteration: int
    before: Any  # where the source was
    made: Made | None  # None: it has ended


class Called:
    """Is told each time whose it is, as otherwise both would refer to each other: `make(n)` of that operator calls the
    source for a batch of n samples, its `place()` says where the source is."""

    def __init__(self) -> None:
        self._given: deque[_Given] = deque()
        self._behind: Any = None  # where the source is behind all of them
        self._taken: _Given | None = None

    def call(self, op: Any, n: int, iteration: int) -> bool:
        """Calls the source for an iteration, in the user's thread; once, also if what followed was interrupted. Says
        whether it goes on; what else it raises is the caller's."""
        if not self._given or self._given[-1].iteration != iteration:
            before = op.place() if self._behind is None else self._behind
            try:
                self._given.append(_Given(iteration, before, op.make(n)))
            except StopIteration:
                self._given.append(_Given(iteration, before, None))
            finally:
                self._behind = op.place()
        return self._given[-1].made is not None

    def discard(self, iteration: int) -> None:
        """Drops what was given for an iteration that won't be, as another source has failed."""
        if self._given and self._given[-1].iteration == iteration:
            self._given.pop()

    def take(self, iteration: int) -> Made:
        """What was given for an iteration; the same again until `done`, as a user may interrupt what follows. Where
        nothing was asked for, a source had ended."""
        if self._taken is None or self._taken.iteration != iteration:
            self._taken = self._given.popleft() if self._given else None
        if self._taken is None or self._taken.made is None:
            raise StopIteration
        return self._taken.made

    def done(self) -> None:
        self._taken = None

    def place(self, op: Any) -> Any:
        """Where the source is, as seen by who takes."""
        try:
            return self._given[0].before
        except IndexError:
            return op.place() if self._behind is None else self._behind

    def clear(self) -> None:
        """Forgets what nobody has taken, and where the source was."""
        self._given.clear()
        self._behind = self._taken = None
