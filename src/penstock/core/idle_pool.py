# SPDX-License-Identifier: Apache-2.0
"""Keeps what was costly to make until somebody needs it again."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
T = TypeVar("T")


class IdlePool(Generic[Key, T]):
    """Objects that are not in use, by what they serve for: at most `each` of a kind, of at most `kinds` kinds. Nothing
    is locked, so that destructors may give objects, in whatever thread and at whatever moment they run."""

    def __init__(self, each: int, kinds: int = 1 << 30):
        self._each, self._kinds = each, kinds
        self._idle: dict[Key, list[T]] = {}  # each operation on it and its lists is done at once

    def take(self, kind: Key) -> T | None:
        """The one that was given last, or None."""
        try:
            return self._idle[kind].pop()
        except (KeyError, IndexError):
            return None

    def give(self, kind: Key, item: T) -> bool:
        """Whether it is kept: it is not where there are enough."""
        idle = self._idle.get(kind)
        if idle is None:
            if len(self._idle) >= self._kinds:
                return False
            idle = self._idle.setdefault(kind, [])
        if len(idle) >= self._each:
            return False
        idle.append(item)
        return True

    def close(self) -> None:
        """Drops all, and keeps none from now on."""
        self._each = 0
        self._idle.clear()

    def __len__(self) -> int:
        return sum(map(len, self._idle.values()))
