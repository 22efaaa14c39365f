# SPDX-License-Identifier: Apache-2.0
"""Caches what operators compute from constant columns."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

_Made = TypeVar("_Made")


class ConstantCache(Generic[_Made]):
    """Keeps the last result computed from constant columns, which are the same read-only arrays for every batch of a
    given size."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[Sequence[Any], _Made] | None = None

    def get(self, columns: Sequence[Any]) -> _Made | None:
        """The cached result if it was made from these same columns; else None."""
        kept = self._kept
        return kept[1] if kept is not None and all(map(operator.is_, kept[0], columns)) else None

    def put(self, columns: Sequence[Any], made: _Made) -> None:
        """Caches the result if all columns are constants or None."""
        if all(c is None or (type(c) is np.ndarray and not c.flags.writeable) for c in columns):
            self._kept = columns, made
