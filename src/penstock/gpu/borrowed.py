# SPDX-License-Identifier: Apache-2.0
"""Memory of another library that work of the GPU uses: its owner is let go only when that work is done, because the
library knows nothing of it and would use the memory again at once."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

from .stream import Event, Stream

# Appended to by __del__, in whatever thread and at whatever moment: nothing may be locked there.
_waiting: deque[tuple[list[Event], Any]] = deque()


class Borrowed:
    """Keeps `owner` until nothing refers to this and the work of the streams that used its memory is done."""

    __slots__ = ("__weakref__", "_device", "_owner", "_streams")

    def __init__(self, owner: Any, stream: Stream):
        self._owner, self._device, self._streams = owner, stream.device, [stream]
        collect()

    def used_on(self, stream: Stream) -> None:
        """Says that work of another stream reads or writes it too."""
        if all(s.closed or s.handle != stream.handle for s in self._streams):
            self._streams.append(stream)

    def __del__(self, finalizing=sys.is_finalizing) -> None:
        if finalizing() or not hasattr(self, "_streams"):
            return
        with self._device:
            _waiting.append(([s.record() for s in self._streams if not s.closed], self._owner))


def collect() -> None:
    """Lets go of what the GPU is through with."""
    for _ in range(len(_waiting)):
        try:
            events, owner = _waiting.popleft()
        except IndexError:  # another thread was faster
            return
        if not all(e.done() for e in events):
            _waiting.append((events, owner))
        del owner
