# SPDX-License-Identifier: Apache-2.0
"""Queue of the data passed to `Pipeline.feed_input`."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable

from ...core.batch import Batch, Borrowed, Kept
from ...core.errors import NothingFed

_QUIET = 2  # repetitions of the same data after which further ones are requested in advance


class Feed:
    """`ask` is called for each iteration in the user's thread, `take` later in the thread that loads."""

    def __init__(self, name: str | None, repeat_last: bool, blocking: bool):
        self.repeat_last, self.blocking = repeat_last, blocking
        self.name = f"the input '{name}'" if name else "an external_source without a source"
        example = f"run({name}=data)" if name and name.isidentifier() else "give it a name and run(name=data)"
        self.advice = f"call Pipeline.feed_input() before run(), or {example}"
        self._fed: deque[list[Batch]] = deque()  # not yet requested
        self._asked: queue.SimpleQueue[list[Batch] | None] = queue.SimpleQueue()  # one for each requested iteration
        self._owed = 0  # requested iterations that wait for data
        self._matching = threading.Lock()  # `put` and `ask` may run in two threads
        self._last: list[Batch] | None = None
        self.taken: tuple[int, list[Batch]] | None = None  # iteration, data
        self._repeated, self._patience = 0, _QUIET  # repetitions since the last `put`; minimum for `repeats`

    @property
    def repeats(self) -> bool:
        """Whether the same data is likely to be repeated."""
        return self._last is not None and not self._fed and self._repeated >= self._patience

    def take_back_asked(self) -> None:
        """Drops requested data that was not taken: repetitions requested in advance, when new data was fed. From then
        on, more repetitions are required before any are requested in advance."""
        self._patience *= 4
        while not self._asked.empty():
            self._asked.get_nowait()

    def put(self, batches: list[Batch]) -> None:
        if self.repeat_last:
            for b in batches:
                # Marks memory that is returned repeatedly: a receiver that may write to it gets a copy. On the GPU,
                # batches are returned without a copy.
                b.owners = ((Borrowed if b.on_host else Kept)(self), *b.owners)
        with self._matching:
            self._repeated = 0
            if self._owed:
                self._owed -= 1
                self._asked.put(batches)
            else:
                self._fed.append(batches)
            if self.repeat_last:
                self._last = batches

    def take_back(self) -> None:
        """Undoes the last `put`, if it was not requested yet."""
        self._fed.pop()

    def __len__(self) -> int:
        return len(self._fed)

    def ask(self) -> None:
        with self._matching:
            if not self._fed and self._last is None and self.blocking:
                self._owed += 1
            else:
                self._repeated += not self._fed
                self._asked.put(self._fed.popleft() if self._fed else self._last)

    def take(self, iteration: int, is_closing: Callable[[], bool]) -> list[Batch]:
        """The data of an iteration; the same data until `taken` is reset, as the user may interrupt the run."""
        if self.taken is not None and self.taken[0] == iteration:
            return self.taken[1]
        while True:
            try:
                batches = self._asked.get(timeout=0.1)
            except queue.Empty:
                if is_closing():
                    raise RuntimeError("the pipeline was closed while it waited for data") from None
                continue
            if batches is None:
                self.taken = None
                raise NothingFed(f"no data was fed to {self.name} for this iteration; {self.advice}")
            self.taken = iteration, batches
            return batches
