# SPDX-License-Identifier: Apache-2.0
"""Where a sample came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


class SourceName(str):
    """The whole path, as errors say it; `given` is the name that the user and DALI know it by."""

    given: str

    def __new__(cls, path: str, given: str) -> SourceName:
        self = super().__new__(cls, path)
        self.given = given
        return self


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
