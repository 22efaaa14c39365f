# SPDX-License-Identifier: Apache-2.0
"""The samples picked for the next batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Picks:
    """The samples that a source loads next, as columns (n, ...). `epoch` and `position`, where present, give each
    sample's place in the order of the whole data set; random operators use them as counters."""

    def __init__(self, **columns: np.ndarray):
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self.__dict__["columns"][name]
        except KeyError:
            raise AttributeError(name) from None

    def select(self, rows: np.ndarray) -> Picks:
        return type(self)(**{k: v[rows] for k, v in self.columns.items()})

    @classmethod
    def concatenate(cls, picks: Sequence[Picks]) -> Picks:
        """Concatenates the picks of several batches."""
        return type(picks[0])(**{k: np.concatenate([p.columns[k] for p in picks]) for k in picks[0].columns})

    def put(self, rows: np.ndarray, other: Picks) -> Picks:
        """The same picks with `other` at `rows`."""
        columns = {k: v.copy() for k, v in self.columns.items()}
        for k, v in columns.items():
            v[rows] = other.columns[k]
        return type(self)(**columns)
