# SPDX-License-Identifier: Apache-2.0
"""Keeps what operators make of constant columns, so that it is made once."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

_Made = TypeVar("_Made")


class ConstantCache(Generic[_Made]):
    """The last thing that was made of constant columns, which are the same read-only arrays in each batch of a size."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[Sequence[Any], _Made] | None = None

    def get(self, columns: Sequence[Any]) -> _Made | None:
        """What was made of these columns, if they are those of the last time."""
        kept = self._kept
        return kept[1] if kept is not None and all(map(operator.is_, kept[0], columns)) else None

    def put(self, columns: Sequence[Any], made: _Made) -> None:
        """Keeps what was made of columns, of which some may be None, if all of them are constants."""
        if all(c is None or (type(c) is np.ndarray and not c.flags.writeable) for c in columns):
            self._kept = columns, made
