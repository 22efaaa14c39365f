# SPDX-License-Identifier: Apache-2.0
"""A set of weak references."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class WeakSet(Generic[T]):
    """Like `weakref.WeakSet`, but threads may add and iterate concurrently. In Python without the GIL, a WeakSet raises
    RuntimeError if another thread removes an item during iteration."""

    def __init__(self) -> None:
        self._references: set[weakref.ref[T]] = set()  # each operation on it is atomic

    def add(self, object: T) -> None:
        self._references.add(weakref.ref(object, self._references.discard))

    def discard(self, object: T) -> None:
        self._references.discard(weakref.ref(object))

    def clear(self) -> None:
        self._references.clear()

    def __contains__(self, object: T) -> bool:
        return weakref.ref(object) in self._references

    def __iter__(self) -> Iterator[T]:
        """Iterates over the objects that exist at the beginning, in any order."""
        return iter([x for r in self._references.copy() if (x := r()) is not None])
