# SPDX-License-Identifier: Apache-2.0
"""The origin of a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class SourceName(str):
    """The full path, as used in errors; `given` is the name that the user and DALI use."""

    given: str

    def __new__(cls, path: str, given: str) -> SourceName:
        self = super().__new__(cls, path)
        self.given = given
        return self

    def __reduce__(self) -> tuple[type[SourceName], tuple[str, str]]:
        return SourceName, (str(self), self.given)


def given_name(source: str) -> str:
    """The name that `source_info` returns: relative to `file_root`, if the file was read with one."""
    return source.given if isinstance(source, SourceName) else source


class SourceNames(Sequence):
    """The origins of a batch's samples: a sequence of strings, each created on access."""

    __slots__ = ("indices", "name")

    def __init__(self, name: Callable[[int], str], indices: np.ndarray):
        """`name(index)` returns the origin of a sample of the data set."""
        self.name, self.indices = name, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return SourceNames(self.name, self.indices[i])
        return self.name(int(self.indices[i]))

    def __repr__(self) -> str:
        return repr(list(self))

    def take(self, rows: np.ndarray) -> SourceNames:
        return SourceNames(self.name, self.indices[rows])

    def put(self, rows: np.ndarray, other: Sequence[str]) -> Sequence[str]:
        """The same with `other` at `rows`."""
        if not isinstance(other, SourceNames) or other.name != self.name:
            return put(list(self), rows, other)
        indices = self.indices.copy()
        indices[rows] = other.indices
        return SourceNames(self.name, indices)


class JoinedNames(Sequence):
    """The origins of samples that were made from the samples of several batches."""

    def __init__(self, parts: Sequence[Sequence[str]]):
        self.parts = parts
        self._given: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.parts[0])

    def __getitem__(self, i: Any) -> str:
        path = " and ".join(dict.fromkeys(part[i] for part in self.parts))
        if self._given is None:
            self._given = self._agreed()
        return SourceName(path, self._given[i])

    def _agreed(self) -> Sequence[str]:
        """The names that users and DALI use, if all batches that have names agree on all; else empty strings."""
        given = [[given_name(name) for name in part] for part in self.parts]
        known = [names for names in given if any(names)]
        return known[0] if known and all(names == known[0] for names in known) else [""] * len(self)


def joined(parts: Sequence[Sequence[str] | None]) -> Sequence[str] | None:
    """The origins of samples made from one sample of each batch: all that are known; None if none is."""
    known: list[Sequence[str]] = []
    for part in parts:
        if part is not None and not any(part is other for other in known):
            known.append(part)
    return JoinedNames(known) if len(known) > 1 else known[0] if known else None


def take(sources: Sequence[str], rows: np.ndarray) -> Sequence[str]:
    """The origins of some rows."""
    return sources.take(rows) if isinstance(sources, SourceNames) else [sources[i] for i in rows]


def put(sources: Sequence[str], rows: np.ndarray, other: Sequence[str]) -> Sequence[str]:
    """The same with `other` at `rows`."""
    if isinstance(sources, SourceNames):
        return sources.put(rows, other)
    changed = list(sources)
    for row, source in zip(rows, other):
        changed[row] = source
    return changed
