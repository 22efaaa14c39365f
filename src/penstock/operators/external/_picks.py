# SPDX-License-Identifier: Apache-2.0
"""Samples that a source returned, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.picks import Picks
from ...core.rows import indices
from ...core.source_name import SourceName
from ...external.ahead import Position
from ._by_sample import Made


class Given(Picks):
    """Batches that the source returned, the selected rows, all by default, and the bad rows."""

    def __init__(self, made: Made, row: np.ndarray | None = None):
        self.is_whole = row is None
        self.batches, self.bad = self.made = made
        super().__init__(row=indices(len(self.batches[0])) if row is None else row)

    def select(self, rows: np.ndarray) -> Picks:
        return Given(self.made, self.columns["row"][rows])

    def put(self, rows: np.ndarray, other: Picks) -> Picks:
        row = self.columns["row"].copy()
        row[rows] = other.columns["row"]
        return Given(self.made, row)


class Names(Sequence):
    """Names of samples for messages, created on access."""

    def __init__(self, source: str, position: Position, n: int):
        self.source, self.position, self.n = source, position, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: Any) -> str:
        if not -self.n <= i < self.n:
            raise IndexError(i)
        at = f"idx_in_epoch {self.position.in_epoch + int(i)} of epoch {self.position.epoch}, by {self.source}"
        return SourceName(at, "")
