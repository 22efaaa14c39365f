# SPDX-License-Identifier: Apache-2.0
"""Sequences seen as rows of frames, and frames put back into sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.batch import Batch, Spec


def expand(batch: Batch, counts: np.ndarray) -> Batch:
    """The frames of all samples as rows, without a copy."""
    spec = batch.spec
    frame = Spec(np.repeat(spec.shape[:, 1:], counts, axis=0), spec.dtype, spec.layout[1:])
    rows = frame.packed()
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    nbytes = frame.volumes() * spec.dtype.itemsize
    rows["data"] = np.repeat(batch.rows["data"], counts) + (within * nbytes).astype("u8")
    return batch.with_rows(frame, rows, batch.owners)


def fold(spec: Spec, counts: np.ndarray | None, allocate: Any = Batch.allocate) -> tuple[Batch, np.ndarray]:
    """Memory for a batch, and the rows that kernels write: its samples, or its frames if `counts` are given."""
    if counts is None:
        batch = allocate(spec)
        return batch, batch.rows
    n = len(counts)
    first = np.cumsum(counts) - counts
    shape = np.zeros((n, spec.ndim + 1), "i8")
    shape[:, 0] = counts
    filled = counts > 0
    if spec.n:
        shape[:, 1:] = spec.shape[np.minimum(first, spec.n - 1)]
    per_row = np.repeat(shape[:, 1:], counts, axis=0)
    if (per_row != spec.shape).any():
        i = int((per_row != spec.shape).any(axis=1).nonzero()[0][0])
        raise ValueError(
            f"the frames of one sequence got different shapes: {per_row[i].tolist()} and {spec.shape[i].tolist()}"
        )
    shape[~filled, 1:] = 0
    batch = allocate(Spec(shape, spec.dtype, "F" + spec.layout if spec.layout else ""))
    return batch, expand(batch, counts).rows
