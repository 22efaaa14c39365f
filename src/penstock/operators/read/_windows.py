# SPDX-License-Identifier: Apache-2.0
"""Shuffling of samples that can only be read in blocks: blocks in random order, and the samples of some neighbouring
ones mixed. The order of an epoch is a function (key, epoch, place) -> index."""

from __future__ import annotations

import threading

import numpy as np

from ...core import rng
from ...core.kernels import library
from ...core.rows import allocate

_INT64 = np.dtype("i8")


class Windows:
    """Orders of samples in blocks, of which block b has those from `begins[b]` to `begins[b + 1]`.

    Each epoch permutes the blocks. Every `window` of them that come one behind the other then are a window, whose
    samples are permuted.
    """

    def __init__(self, begins: np.ndarray, window: int):
        self.begins, self.window = np.asarray(begins, _INT64), window
        self._lock = threading.Lock()
        self._orders: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}  # of (key, epoch)

    def index(self, key: int, epoch: int, place: np.ndarray) -> np.ndarray:
        """(n,) the samples at `place` (n,) of an epoch."""
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
        """The blocks of the window that a place lies in, those of the next one, and how much of the former lies before
        the place, as a share of it."""
        blocks, ends = self._order(key, epoch)
        begin = int(np.searchsorted(ends[:: self.window], place, "right") - 1) * self.window
        end = min(begin + self.window, len(blocks))
        share = (place - int(ends[begin])) / max(int(ends[end] - ends[begin]), 1)
        return blocks[begin:end], blocks[end : end + self.window], share

    def _order(self, key: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The blocks of an epoch, and where in it each begins; and where the last one ends."""
        with self._lock:
            order = self._orders.get((key, epoch))
            if order is None:
                n = len(self.begins) - 1
                blocks = _permuted(rng.key(key, 0), epoch, n, np.arange(n, dtype=_INT64))
                ends = np.concatenate([np.zeros(1, _INT64), np.cumsum(np.diff(self.begins)[blocks])])
                order = blocks, ends
                # Batches on their way and replacements of bad samples are at most one epoch apart.
                self._orders = {k: o for k, o in self._orders.items() if k[1] >= epoch - 1} | {(key, epoch): order}
            return order


def _permuted(key: int, epoch: int, n: int, places: np.ndarray) -> np.ndarray:
    """What a random permutation of 0..n-1 has at `places`."""
    out, at = allocate(len(places), _INT64)
    library().permute(key, epoch % 2**32, n, places.astype(_INT64).tobytes(), len(places), at)
    return out
