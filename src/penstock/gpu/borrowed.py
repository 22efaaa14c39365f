# SPDX-License-Identifier: Apache-2.0
"""Memory of another library that GPU work uses. Its owner is released only when that work is done, as the library does
not know of the work and would reuse the memory at once."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

from .stream import Event, Stream
from .uses import UsedMemory

# Filled by __del__, which may run in any thread at any time: it must not take locks.
_waiting: deque[tuple[list[Event], Any]] = deque()


class Borrowed(UsedMemory):
    """Keeps `owner` until this object is unreferenced and the work of the streams that used its memory is done."""

    __slots__ = ("__weakref__", "_device", "_owner")

    def __init__(self, owner: Any, stream: Stream):
        self._owner, self._device, self._streams = owner, stream.device, [stream]
        collect()

    def __del__(self, finalizing=sys.is_finalizing) -> None:
        if finalizing() or not hasattr(self, "_streams"):
            return
        with self._device:
            _waiting.append(([s.record() for s in self._streams if not s.closed], self._owner))


def collect() -> None:
    """Releases owners whose GPU work is done."""
    for _ in range(len(_waiting)):
        try:
            events, owner = _waiting.popleft()
        except IndexError:  # another thread was faster
            return
        if not all(e.done() for e in events):
            _waiting.append((events, owner))
        del owner
