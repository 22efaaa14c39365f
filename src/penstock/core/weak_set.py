# SPDX-License-Identifier: Apache-2.0
"""Objects that are listed for as long as somebody else refers to them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class WeakSet(Generic[T]):
    """As a `weakref.WeakSet`, but any threads may add and go over it at once. While a WeakSet is gone over, another
    thread of a Python without the GIL may take something out of it, which is a RuntimeError."""

    def __init__(self) -> None:
        self._references: set[weakref.ref[T]] = set()  # each operation on it is done at once

    def add(self, object: T) -> None:
        self._references.add(weakref.ref(object, self._references.discard))

    def discard(self, object: T) -> None:
        self._references.discard(weakref.ref(object))

    def clear(self) -> None:
        self._references.clear()

    def __contains__(self, object: T) -> bool:
        return weakref.ref(object) in self._references

    def __iter__(self) -> Iterator[T]:
        """Those that exist at the beginning, in any order."""
        return iter([x for r in self._references.copy() if (x := r()) is not None])
