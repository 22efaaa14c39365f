# SPDX-License-Identifier: Apache-2.0
"""Keeps costly objects for reuse."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
T = TypeVar("T")


class IdlePool(Generic[Key, T]):
    """Idle objects by kind: at most `each` per kind, at most `kinds` kinds. Uses no lock, so that destructors may call
    `give` in any thread at any time."""

    def __init__(self, each: int, kinds: int = 1 << 30):
        self._each, self._kinds = each, kinds
        self._idle: dict[Key, list[T]] = {}  # operations on it and its lists are atomic

    def take(self, kind: Key) -> T | None:
        """The most recently given object, or None."""
        try:
            return self._idle[kind].pop()
        except (KeyError, IndexError):
            return None

    def give(self, kind: Key, item: T) -> bool:
        """Returns whether the object was kept; False if the pool is full."""
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
        """Drops all objects; later ones are not kept."""
        self._each = 0
        self._idle.clear()

    def __len__(self) -> int:
        return sum(map(len, self._idle.values()))
