# SPDX-License-Identifier: Apache-2.0
"""Sequences seen as rows of frames, and frames put back into sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.batch import Batch, Spec
from ..core.rows import address
from ..graph.node import DataNode, Node


def expand(batch: Batch, counts: np.ndarray) -> Batch:
    """The frames of all samples as rows, without a copy."""
    spec = batch.spec
    frame = Spec(np.repeat(spec.shape[:, 1:], counts, axis=0), spec.dtype, spec.layout[1:])
    rows = frame.packed()
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    nbytes = frame.volumes() * spec.dtype.itemsize
    rows["data"] = np.repeat(batch.rows["data"], counts) + (within * nbytes).astype("u8")
    return batch.with_rows(frame, rows, batch.owners)


def frames_of(node: Node, values: dict[tuple[int, int], Batch]) -> np.ndarray | None:
    """Frames per sample if an input of an operator that `runs_frames`, or else an argument, has them."""
    if not node.op.runs_frames:
        return None
    for d in node.inputs:
        spec = values[d.source.number, d.index].spec
        if spec.layout.startswith("F") and spec.ndim > 1:
            return spec.shape[:, 0]
    for name, data in node.args.items():
        if isinstance(data, DataNode) and node.op.schema[name].per_frame:
            spec = values[data.source.number, data.index].spec
            if spec.layout.startswith("F") and spec.ndim:
                return spec.shape[:, 0]
    return None


def as_rows(batch: Batch, counts: np.ndarray, sample_of: np.ndarray) -> Batch:
    """The frames of an input as rows, or each sample as many times as there are frames."""
    if not batch.spec.layout.startswith("F"):
        return batch.take(sample_of)
    frames = batch.spec.shape[:, 0]
    if (frames != counts).any():
        i = int((frames != counts).nonzero()[0][0])
        raise ValueError(f"the inputs have {frames[i]} and {counts[i]} frames in sample {i}; they need equally many")
    return expand(batch, counts)


def as_sequences(rows: Batch, counts: np.ndarray) -> Batch:
    """Frames of one shape, one behind the other, as sequences; nothing is copied."""
    array = rows.array()
    shape = np.zeros((len(counts), array.ndim), "i8")
    shape[:, 0], shape[:, 1:] = counts, array.shape[1:]
    spec = Spec(shape, array.dtype, "F" + (rows.spec.layout or "*" * (array.ndim - 1)))
    packed = spec.packed()
    packed["data"] = address(array) + ((np.cumsum(counts) - counts) * array[:1].nbytes).astype("u8")
    return rows.with_rows(spec, packed, (array,))


def fold(
    spec: Spec, counts: np.ndarray | None, empty: np.ndarray | None = None, allocate: Any = Batch.allocate
) -> tuple[Batch, np.ndarray]:
    """Memory for a batch, and the rows that kernels write: its samples, or its frames if `counts` are given. `empty`
    are the shapes that frames of the samples without any would have."""
    if counts is None:
        batch = allocate(spec)
        return batch, batch.rows
    n = len(counts)
    first = np.cumsum(counts) - counts
    shape = np.zeros((n, spec.ndim + 1), "i8")
    shape[:, 0] = counts
    if spec.n:
        shape[:, 1:] = spec.shape[np.minimum(first, spec.n - 1)]
    per_row = np.repeat(shape[:, 1:], counts, axis=0)
    if (per_row != spec.shape).any():
        i = int((per_row != spec.shape).any(axis=1).nonzero()[0][0])
        raise ValueError(
            f"the frames of one sequence got different shapes: {per_row[i].tolist()} and {spec.shape[i].tolist()}"
        )
    shape[counts == 0, 1:] = 0 if empty is None else empty
    batch = allocate(Spec(shape, spec.dtype, "F" + spec.layout if spec.layout else ""))
    return batch, expand(batch, counts).rows
