# SPDX-License-Identifier: Apache-2.0
"""Batches as sparse tensors in coordinate form. Imports no framework."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def coordinates(
    samples: Sequence[np.ndarray], ndim: int, dtype: np.dtype | type[np.generic]
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """All elements of samples of `ndim` dimensions, zeros too: the index (1 + ndim, elements), whose first row is the
    number of the sample, the values, and the shape of the batch: the largest extents.

    >>> index, values, shape = coordinates([np.array([5, 6]), np.array([7])], 1, np.dtype("i8"))
    >>> index.tolist(), values.tolist(), shape
    ([[0, 0, 1], [0, 1, 0]], [5, 6, 7], (2, 2))
    """
    extents = np.array([s.shape for s in samples], "i8").reshape(len(samples), ndim).max(axis=0, initial=0)
    index = [
        np.concatenate([np.full((1, s.size), i), np.indices(s.shape).reshape(s.ndim, -1)])
        for i, s in enumerate(samples)
    ]
    values = [s.reshape(-1) for s in samples]
    if not samples:
        index, values = [np.empty((1 + ndim, 0), "i8")], [np.empty(0, dtype)]
    return np.concatenate(index, axis=1), np.concatenate(values), (len(samples), *map(int, extents))
