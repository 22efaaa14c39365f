# SPDX-License-Identifier: Apache-2.0
"""Where a sample came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class SourceName(str):
    """The whole path, as errors say it; `given` is the name that the user and DALI know it by."""

    given: str

    def __new__(cls, path: str, given: str) -> SourceName:
        self = super().__new__(cls, path)
        self.given = given
        return self

    def __reduce__(self) -> tuple[type[SourceName], tuple[str, str]]:
        return SourceName, (str(self), self.given)


def given_name(source: str) -> str:
    """What `source_info` says of a source: a file's name relative to `file_root`, if it was read with one."""
    return source.given if isinstance(source, SourceName) else source


class SourceNames(Sequence):
    """Where the samples of a batch came from, as a list of strings, each made when it is asked for."""

    __slots__ = ("indices", "name")

    def __init__(self, name: Callable[[int], str], indices: np.ndarray):
        """`name` tells where a sample of the data set comes from."""
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
    """Where samples come from that are made of those of several batches."""

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
        """The names that users and DALI know, where all batches that have any agree on all; else none."""
        given = [[given_name(name) for name in part] for part in self.parts]
        known = [names for names in given if any(names)]
        return known[0] if known and all(names == known[0] for names in known) else [""] * len(self)


def joined(parts: Sequence[Sequence[str] | None]) -> Sequence[str] | None:
    """Of samples that are made of one sample of each batch: what is known of each, None if nothing is."""
    known: list[Sequence[str]] = []
    for part in parts:
        if part is not None and not any(part is other for other in known):
            known.append(part)
    return JoinedNames(known) if len(known) > 1 else known[0] if known else None


def take(sources: Sequence[str], rows: np.ndarray) -> Sequence[str]:
    """Those of some rows."""
    return sources.take(rows) if isinstance(sources, SourceNames) else [sources[i] for i in rows]


def put(sources: Sequence[str], rows: np.ndarray, other: Sequence[str]) -> Sequence[str]:
    """The same with `other` at `rows`."""
    if isinstance(sources, SourceNames):
        return sources.put(rows, other)
    changed = list(sources)
    for row, source in zip(rows, other):
        changed[row] = source
    return changed
