# SPDX-License-Identifier: Apache-2.0
"""Weighted sampling: a function (epoch, draw) -> index of the sample."""

from __future__ import annotations

import threading
import zlib
from typing import Any

import numpy as np

from ...core.rng import Random

_STREAM = 0x57  # random stream; differs from those of operators with the same seed
_INT64 = np.dtype("i8")


class Weights:
    """The samples drawn in an epoch. `weight` (n,): a weight for each sample.

    With replacement, draws are independent, with probability weight[i] / sum. Without replacement, each draw selects
    from the remaining samples by their weights; samples of weight 0 are never drawn. This is the order of E / weight
    with exponential random numbers E (Efraimidis, Spirakis 2006); an epoch has its first `draws` samples.
    """

    def __init__(self, weight: np.ndarray, draws: int | None, replacement: bool, key: int):
        self.weight, self.replacement, self.key = weight, replacement, key
        self.some = np.flatnonzero(weight)
        self.draws = draws or (len(weight) if replacement else len(self.some))
        if not replacement and self.draws > len(self.some):
            raise ValueError(
                f"num_samples={self.draws}, but without replacement only the {len(self.some)} samples with a weight "
                "above 0 can be drawn"
            )
        self._sums = np.cumsum(weight[self.some])
        self._lock = threading.Lock()
        self._orders: dict[tuple[int, int], np.ndarray] = {}  # by (key, epoch)

    def index(self, epoch: np.ndarray, draw: np.ndarray) -> np.ndarray:
        """Samples (n,) of `draw` (n,) in `epoch` (n,)."""
        epoch, draw = np.asarray(epoch, _INT64), np.asarray(draw, _INT64)
        if self.replacement:
            u = Random(self.key, epoch.astype("u4"), draw).uniform(1, _STREAM)[:, 0]
            place = np.searchsorted(self._sums, u * self._sums[-1], "right")
            return self.some[np.minimum(place, len(self.some) - 1)]  # u * sum may be rounded up to the sum
        out = np.empty(len(draw), _INT64)
        for e in np.unique(epoch).tolist():
            of_epoch = epoch == e
            out[of_epoch] = self._order(e)[draw[of_epoch]]
        return out

    def _order(self, epoch: int) -> np.ndarray:
        with self._lock:
            order = self._orders.get((self.key, epoch))
            if order is None:
                n = len(self.some)
                u = Random(self.key, np.full(n, epoch, "u4"), self.some).uniform(1, _STREAM)[:, 0]
                order = self.some[np.argsort(-np.log1p(-u) / self.weight[self.some], kind="stable")[: self.draws]]
                # Batches in progress and replacements of bad samples are at most one epoch apart.
                recent = {k: o for k, o in self._orders.items() if k[1] >= epoch - 1}
                self._orders = recent | {(self.key, epoch): order}
            return order

    def fingerprint(self) -> int:
        return zlib.crc32(self.weight.tobytes())


def weights_of(given: Any, size: int, labels: np.ndarray | None) -> np.ndarray:
    """Converts the argument `weights` to an array (size,), float64. Raises ValueError for invalid values."""
    if isinstance(given, dict):
        if labels is None:
            raise ValueError(
                "'weights' is a dictionary of labels, but this reader knows no labels before it reads; give a weight "
                "for each sample"
            )
        found, which = np.unique(labels, return_inverse=True)
        if missing := [label for label in found.tolist() if label not in given]:
            raise ValueError(f"'weights' has no weight for the label {missing[0]}; it needs one for each label")
        weight = np.array([given[label] for label in found.tolist()], "f8")[which]
    else:
        weight = np.array(given, "f8")
        if weight.shape != (size,):
            raise ValueError(
                f"'weights' has the shape {weight.shape}, and there are {size} samples; it takes one for each, in the "
                "order in which the reader finds them"
            )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not (np.isfinite(total) and (weight >= 0).all() and total > 0):
        raise ValueError("'weights' takes numbers of 0 or more, at least one of them above 0, and with a finite sum")
    return weight
