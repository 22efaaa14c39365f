# SPDX-License-Identifier: Apache-2.0
"""Queue of the data that the user's source returned in the user's thread, for the threads of the pipeline."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from ._by_sample import Made


class _Given(NamedTuple):
    iteration: int
    before: Any  # the source's state before the call
    made: Made | None  # None if the source has ended


class Called:
    """The operator is passed to each call, to avoid a reference cycle: its `make(n)` calls the source for a batch of n
    samples, and its `place()` returns the source's state."""

    def __init__(self) -> None:
        self._given: deque[_Given] = deque()
        self._behind: Any = None  # the source's state after all of `_given`
        self._taken: _Given | None = None

    def call(self, op: Any, n: int, iteration: int) -> bool:
        """Calls the source for an iteration, in the user's thread, only once even if the run was interrupted later.
        Returns False if the source has ended; its other exceptions propagate."""
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
        """Drops the data of an iteration that is cancelled because another source failed."""
        if self._given and self._given[-1].iteration == iteration:
            self._given.pop()

    def take(self, iteration: int) -> Made:
        """Returns the data of an iteration; the same data until `done` is called, as the user may interrupt the run.
        Raises StopIteration if the source has ended or was not called because another one ended."""
        if self._taken is None or self._taken.iteration != iteration:
            self._taken = self._given.popleft() if self._given else None
        if self._taken is None or self._taken.made is None:
            raise StopIteration
        return self._taken.made

    def done(self) -> None:
        self._taken = None

    def place(self, op: Any) -> Any:
        """The source's state before the next `take`."""
        try:
            return self._given[0].before
        except IndexError:
            return op.place() if self._behind is None else self._behind

    def clear(self) -> None:
        """Drops all data that was not taken, and the source's state."""
        self._given.clear()
        self._behind = self._taken = None
