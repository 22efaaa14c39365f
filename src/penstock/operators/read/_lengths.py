# SPDX-License-Identifier: Apache-2.0
"""Batches of samples of similar length: the order of the samples of an epoch, a function (epoch, place) -> index."""

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
    """Orders in which runs of `run` samples are of similar length, for samples of the lengths `length` (n,).

    A run is one batch of every shard: shards take turns along it, so that each gets a batch from it.

    `key`: of the random numbers; None gives the samples from the shortest to the longest. Otherwise the samples, sorted
    by length, are cut into `num_buckets` ranges that consist of whole runs. Each epoch permutes the samples of every
    range, and then the runs. The run that is not full comes last.
    """

    def __init__(self, length: np.ndarray, num_buckets: int, key: int | None):
        self.length, self.num_buckets, self.key = length, num_buckets, key
        self._sorted = np.argsort(length, kind="stable")
        self._lock = threading.Lock()
        self._orders: dict[tuple[int | None, int, int], np.ndarray] = {}  # of (key, run, epoch)

    def index(self, epoch: int, place: np.ndarray, run: int) -> np.ndarray:
        """(n,) the samples at `place` (n,) of an epoch."""
        if self.key is None:
            return self._sorted[place]
        with self._lock:
            order = self._orders.get((self.key, run, epoch))
            if order is None:
                order = self._shuffled(epoch, run, self.key)
                # Batches on their way and replacements of bad samples are at most one epoch apart.
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
    """(size,) float64: `batch_by_length` as a reader was given it; `known` are the lengths that the reader knows.
    ValueError with what is accepted."""
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
