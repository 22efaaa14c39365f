# SPDX-License-Identifier: Apache-2.0
"""Data that `Pipeline.feed_input` brings, handed out in order."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable

from ...core.batch import Batch, Borrowed, Kept
from ...core.errors import NothingFed

_QUIET = 2  # iterations with the same data after which more are asked for ahead of time


class Feed:
    """`ask` is called for each iteration in the user's thread, `take` later by the one that loads."""

    def __init__(self, name: str | None, repeat_last: bool, blocking: bool):
        self.repeat_last, self.blocking = repeat_last, blocking
        self.name = f"the input '{name}'" if name else "an external_source without a source"
        example = f"run({name}=data)" if name and name.isidentifier() else "give it a name and run(name=data)"
        self.advice = f"call Pipeline.feed_input() before run(), or {example}"
        self._fed: deque[list[Batch]] = deque()  # not asked for yet
        self._asked: queue.SimpleQueue[list[Batch] | None] = queue.SimpleQueue()  # one for each iteration asked for
        self._owed = 0  # iterations asked for that wait for data
        self._matching = threading.Lock()  # of what is fed with what is asked for, perhaps in two threads
        self._last: list[Batch] | None = None
        self.taken: tuple[int, list[Batch]] | None = None  # for which iteration, and what
        self._repeated, self._patience = 0, _QUIET  # iterations since the last `put`, and how many are to come first

    @property
    def repeats(self) -> bool:
        """Whether the same data is likely to be wanted again."""
        return self._last is not None and not self._fed and self._repeated >= self._patience

    def take_back_asked(self) -> None:
        """Undoes what was asked for and not taken: repeated data, where other data came. The next time it is waited
        longer before anything is asked for ahead."""
        self._patience *= 4
        while not self._asked.empty():
            self._asked.get_nowait()

    def put(self, batches: list[Batch]) -> None:
        if self.repeat_last:
            for b in batches:
                # It is looked for in each batch. On the GPU what is given out again and again is not copied for it.
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
        """Undoes the last `put`, of which nobody has asked for anything yet."""
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
        """Data for an iteration; the same again until `taken` is reset, as a user may interrupt what follows."""
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
