# SPDX-License-Identifier: Apache-2.0
"""Shuffling of samples that can only be read in blocks: blocks are shuffled, then the samples of each group of
consecutive blocks. The order is a function (key, epoch, place) -> index."""

from __future__ import annotations

import threading

import numpy as np

from ...core import rng
from ...core.kernels import library
from ...core.rows import allocate

_INT64 = np.dtype("i8")


class Windows:
    """Orders of samples in blocks; block b has samples `begins[b]` to `begins[b + 1]`.

    Each epoch permutes the blocks. Then each `window` consecutive blocks form a window, whose samples are permuted.
    """

    def __init__(self, begins: np.ndarray, window: int):
        self.begins, self.window = np.asarray(begins, _INT64), window
        self._lock = threading.Lock()
        self._orders: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}  # by (key, epoch)

    def index(self, key: int, epoch: int, place: np.ndarray) -> np.ndarray:
        """Samples (n,) at `place` (n,) of an epoch."""
        blocks, ends = self._order(key, epoch)
        within = np.empty(len(place), _INT64)
        number = np.searchsorted(ends[:: self.window], place, "right") - 1
        for w in np.unique(number).tolist():
            its = number == w
            begin, end = int(ends[w * self.window]), int(ends[min((w + 1) * self.window, len(blocks))])
            within[its] = begin + _permuted(rng.key(key, w + 1), epoch, end - begin, place[its] - begin)
        block = np.searchsorted(ends, within, "right") - 1
        return self.begins[blocks[block]] + within - ends[block]

    def upcoming(self, key: int, epoch: int, place: int) -> tuple[np.ndarray, np.ndarray, float]:
        """The blocks of the window that contains a place, the blocks of the next window, and the fraction of the first
        window before the place."""
        blocks, ends = self._order(key, epoch)
        begin = int(np.searchsorted(ends[:: self.window], place, "right") - 1) * self.window
        end = min(begin + self.window, len(blocks))
        share = (place - int(ends[begin])) / max(int(ends[end] - ends[begin]), 1)
        return blocks[begin:end], blocks[end : end + self.window], share

    def _order(self, key: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The order of an epoch's blocks, and the first place of each, with the total at the end."""
        with self._lock:
            order = self._orders.get((key, epoch))
            if order is None:
                n = len(self.begins) - 1
                blocks = _permuted(rng.key(key, 0), epoch, n, np.arange(n, dtype=_INT64))
                ends = np.concatenate([np.zeros(1, _INT64), np.cumsum(np.diff(self.begins)[blocks])])
                order = blocks, ends
                # Batches in progress and replacements of bad samples are at most one epoch apart.
                self._orders = {k: o for k, o in self._orders.items() if k[1] >= epoch - 1} | {(key, epoch): order}
            return order


def _permuted(key: int, epoch: int, n: int, places: np.ndarray) -> np.ndarray:
    """Elements at `places` of a random permutation of 0..n-1."""
    out, at = allocate(len(places), _INT64)
    library().permute(key, epoch % 2**32, n, places.astype(_INT64).tobytes(), len(places), at)
    return out
