# SPDX-License-Identifier: Apache-2.0
"""Order of samples with batches of similar length: a function (epoch, place) -> index."""

from __future__ import annotations

import threading
import zlib
from typing import Any

import numpy as np

from ...core import rng
from ...core.kernels import library
from ...core.rows import allocate

_INT64 = np.dtype("i8")


class Lengths:
    """Orders with runs of `run` samples of similar length. `length` (n,): lengths of the samples.

    A run consists of one batch per shard. Shards take its samples in turns.

    `key`: key of the random numbers; None sorts the samples by increasing length. Otherwise the sorted samples are
    split into `num_buckets` ranges of whole runs. Each epoch permutes the samples of every range, and then the runs. An
    incomplete run comes last.
    """

    def __init__(self, length: np.ndarray, num_buckets: int, key: int | None):
        self.length, self.num_buckets, self.key = length, num_buckets, key
        self._sorted = np.argsort(length, kind="stable")
        self._lock = threading.Lock()
        self._orders: dict[tuple[int | None, int, int], np.ndarray] = {}  # by (key, run, epoch)

    def index(self, epoch: int, place: np.ndarray, run: int) -> np.ndarray:
        """Indices (n,) of the samples at `place` (n,) of an epoch."""
        if self.key is None:
            return self._sorted[place]
        with self._lock:
            order = self._orders.get((self.key, run, epoch))
            if order is None:
                order = self._shuffled(epoch, run, self.key)
                # Batches in progress and replacements of bad samples are at most one epoch apart.
                recent = {k: o for k, o in self._orders.items() if k[2] >= epoch - 1}
                self._orders = recent | {(self.key, run, epoch): order}
            return order[place]

    def _shuffled(self, epoch: int, run: int, key: int) -> np.ndarray:
        n = len(self._sorted)
        full = n // run
        buckets = max(min(self.num_buckets, full), 1)
        borders = [*(np.arange(buckets) * full // buckets * run).tolist(), n]
        order = np.empty(n, _INT64)
        for k, (begin, end) in enumerate(zip(borders, borders[1:])):
            order[begin:end] = self._sorted[begin + _permutation(rng.key(key, k), epoch, end - begin)]
        runs = order[: full * run].reshape(full, run)
        runs[:] = runs[_permutation(rng.key(key, buckets), epoch, full)]
        return order

    def fingerprint(self) -> int:
        return zlib.crc32(self.length.tobytes())


def _permutation(key: int, epoch: int, n: int) -> np.ndarray:
    """A random permutation of 0..n-1."""
    out, at = allocate(n, _INT64)
    if n:
        library().permute(key, epoch % 2**32, n, np.arange(n, dtype=_INT64).tobytes(), n, at)
    return out


def lengths_of(given: Any, size: int, known: np.ndarray | None) -> np.ndarray:
    """Converts the argument `batch_by_length` to lengths (size,), float64. `known`: lengths that the reader knows.
    Raises ValueError for invalid values."""
    if given is True:
        if known is None:
            raise ValueError(
                "'batch_by_length' is True, but this reader does not know the lengths of samples before it reads them; "
                "give an array with a length for each sample"
            )
        return np.asarray(known, "f8")
    try:
        length = np.array(given, "f8")
    except (TypeError, ValueError):
        raise ValueError(f"'batch_by_length' takes True or an array of numbers; got {given!r}") from None
    if length.shape != (size,):
        raise ValueError(
            f"'batch_by_length' has the shape {length.shape}, and there are {size} samples; it takes a length for "
            "each, in the order in which the reader finds them, or True"
        )
    if not (np.isfinite(length) & (length >= 0)).all():
        i = int(np.flatnonzero(~(np.isfinite(length) & (length >= 0)))[0])
        raise ValueError(f"'batch_by_length' takes numbers of 0 or more; sample {i} has {length[i]:g}")
    return length
