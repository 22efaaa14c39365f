# SPDX-License-Identifier: Apache-2.0
"""Sequences seen as rows of frames, and frames put back into sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.batch import Batch, Spec
from ..core.op import Arg
from ..core.rows import address
from ..graph.node import DataNode, Node
from .arguments import frames_of_argument, has_frames
from .context import Context, Frames
from .origins import Origin, names_of

_Edge = tuple[int, int]


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


class FrameContext(Context):
    """A batch of sequences with a row for each frame, as programs plan it: `inputs` and `arguments`, which are data,
    are seen as rows, and what comes of them as sequences again by `publish`. Raises ValueError if they don't fit."""

    __slots__ = ("_counts", "_whole")

    def __init__(
        self, whole: Context, counts: np.ndarray, inputs: Iterable[_Edge], arguments: Mapping[_Edge, list[Arg]]
    ):
        of = np.repeat(np.arange(whole.n, dtype="i4"), counts)
        super().__init__(len(of), whole.epoch[of], whole.position[of], whole.iteration, whole.rows[of])
        sequences = set()
        for e in inputs:
            batch = whole.values[e]
            self.values[e] = rows = as_rows(batch, counts, of)
            rows.sources = None  # which belong to sequences
            if batch.spec.layout.startswith("F"):
                sequences.add(e)
        for e, read_as in arguments.items():
            kinds = {has_frames(arg, whole.values[e]) for arg in read_as}
            if len(kinds) > 1 or (e in self.values and e in sequences):
                raise ValueError("an argument is read in two ways")
            if e not in self.values:
                self.values[e] = _rows_of_argument(read_as[0], whole.values[e], counts, of)
        self.frames = Frames(of, frozenset(sequences))
        self.status, self.failed, self.timings, self.gpu = whole.status, whole.failed, whole.timings, whole.gpu
        self._whole, self._counts = whole, counts

    def source_of(self, node: Node, row: int) -> str:
        """Of a sample."""
        return self._whole.source_of(node, row)

    def allocate(self, spec: Spec) -> Batch:
        """Memory for the frames of an output; those of one sequence lie one behind the other."""
        batch, rows = fold(spec, self._counts)
        return batch.with_rows(spec, rows, batch.owners)

    def publish(self, outputs: Iterable[_Edge], named: Mapping[_Edge, Origin]) -> None:
        """Makes outputs known as sequences; `named` says where an output's samples come from."""
        values, first = self._whole.values, np.cumsum(self._counts) - self._counts
        for e in outputs:
            rows = self.values[e]
            spec = rows.spec
            shape = np.concatenate([self._counts[:, None], spec.shape[first]], axis=1)
            whole = Spec(shape, spec.dtype, "F" + spec.layout if spec.layout else "")
            tensors = whole.packed()
            tensors["data"] = rows.rows["data"][first]
            values[e] = rows.with_rows(whole, tensors, rows.owners, names_of(named.get(e), values))


def _rows_of_argument(arg: Arg, batch: Batch, counts: np.ndarray, sample_of: np.ndarray) -> Batch:
    if has_frames(arg, batch):
        return Batch.from_array(frames_of_argument(arg, batch, counts))
    if not batch.spec.is_dense:  # vectors of different lengths
        return batch.take(sample_of)
    return Batch.from_array(np.repeat(batch.array(), counts, axis=0))
