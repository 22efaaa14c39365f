# SPDX-License-Identifier: Apache-2.0
"""Splits sequences into rows of frames, and joins frames into sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..core.batch import Batch, Spec
from ..core.op import Arg
from ..core.rows import address
from ..graph.node import DataNode, Edge, Node, edge_of
from .arguments import frames_of_argument, has_frames
from .context import Context
from .source_info import Origin, names_of


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
    """Frames per sample if an input of the operator, or else an argument, has them."""
    for d in node.inputs:
        spec = values[edge_of(d)].spec
        if spec.layout.startswith("F") and spec.ndim > 1:
            return spec.shape[:, 0]
    for name, data in node.args.items():
        if isinstance(data, DataNode) and node.op.schema[name].per_frame:
            spec = values[edge_of(data)].spec
            if spec.layout.startswith("F") and spec.ndim:
                return spec.shape[:, 0]
    return None


def as_sequences(rows: Batch, counts: np.ndarray) -> Batch:
    """Joins consecutive frames of one shape into sequences, without a copy."""
    array = rows.array()
    shape = np.zeros((len(counts), array.ndim), "i8")
    shape[:, 0], shape[:, 1:] = counts, array.shape[1:]
    spec = Spec(shape, array.dtype, "F" + (rows.spec.layout or "*" * (array.ndim - 1)))
    packed = spec.packed()
    packed["data"] = address(array) + ((np.cumsum(counts) - counts) * array[:1].nbytes).astype("u8")
    return rows.with_rows(spec, packed, (array,))


def check_frames(shape: np.ndarray, sample_of: np.ndarray) -> None:
    """Raises ValueError if frames of one sequence have different shapes; `sample_of` gives each frame's sequence."""
    wrong = (shape[1:] != shape[:-1]).any(axis=1) & (sample_of[1:] == sample_of[:-1])
    if wrong.any():
        i = int(wrong.nonzero()[0][0])
        raise ValueError(
            f"the frames of one sequence got different shapes: {shape[i].tolist()} and {shape[i + 1].tolist()}"
        )


class FrameContext(Context):
    """A batch of sequences with one row per frame, `counts` frames in each sequence; samples of other inputs are
    repeated. `see` adds inputs as rows; `publish` joins output rows into sequences."""

    __slots__ = ("_counts", "_first", "_labels", "_per_frame", "sequences", "whole")

    sample_of: np.ndarray

    def __init__(self, whole: Context, counts: np.ndarray):
        of = np.repeat(np.arange(whole.n, dtype="i4"), counts)
        super().__init__(len(of), whole.epoch[of], whole.position[of], whole.iteration, whole.rows[of])
        self.sample_of = of
        self.sequences: frozenset[Edge] = frozenset()  # the inputs that are sequences
        self.status, self.failed, self.timings, self.gpu = whole.status, whole.failed, whole.timings, whole.gpu
        self.whole, self._counts = whole, counts
        self._first = (np.cumsum(counts) - counts)[counts > 0]  # first frame of each sequence that has frames
        self._labels: dict[Edge, str] = {}  # for inputs: the layout assumed by operators
        self._per_frame: dict[Edge, bool] = {}  # for arguments: whether they have a value per frame

    def see(self, ins: Mapping[Edge, str], arguments: Iterable[tuple[Arg, Edge]]) -> None:
        """Adds the inputs of an operator, with the layouts it assumes, and its arguments that are data as rows. Raises
        ValueError if earlier operators see them as other rows."""
        for e, label in ins.items():
            if self._labels.setdefault(e, label) != label:
                raise ValueError("an input is read with two layouts")
            if e not in self.values or e in self._per_frame:
                self.values[e] = rows = self._input(e, label)
                rows.sources = None  # these belong to whole sequences
        for arg, e in arguments:
            batch = self.whole.values[e]
            per_frame = has_frames(arg, batch)
            if self._per_frame.setdefault(e, per_frame) != per_frame:
                raise ValueError(f"'{arg.name}' has a value for each frame, which another argument has not")
            if e not in self.values:
                self.values[e] = _rows_of_argument(arg, batch, self._counts, self.sample_of)
        if any(not self._per_frame.get(e, True) for e in self.sequences):
            raise ValueError("a sequence is read as an argument of samples, too")

    def _input(self, e: Edge, label: str) -> Batch:
        batch = self.whole.values[e]
        if not label.startswith("F"):
            return batch.take(self.sample_of)
        self.sequences |= {e}
        return self._frames_of(batch if batch.spec.layout else batch.relabel(batch.spec.like(layout=label)))

    def _frames_of(self, sequences: Batch) -> Batch:
        frames, counts = sequences.spec.shape[:, 0], self._counts
        if (frames != counts).any():
            i = int((frames != counts).nonzero()[0][0])
            raise ValueError(
                f"the inputs have {frames[i]} and {counts[i]} frames in sample {i}; they need equally many"
            )
        return expand(sequences, counts)

    def source_of(self, node: Node, row: int) -> str:
        """The origin of a sample, not of a frame."""
        return self.whole.source_of(node, row)

    def _sequences(self, spec: Spec, of_none: Spec | None = None) -> Spec:
        """The spec of sequences, from the spec of their frames; `of_none` is the frame spec of sequences without
        frames."""
        counts = self._counts
        shape = np.zeros((len(counts), spec.ndim + 1), "i8")
        shape[:, 0], shape[counts > 0, 1:] = counts, spec.shape[self._first]
        if of_none is not None:
            shape[counts == 0, 1:] = of_none.shape
        return Spec(shape, spec.dtype, "F" + spec.layout if spec.layout else "")

    def frames_of_none(self) -> FrameContext | None:
        """A context with one frame, which has a shape but no data, for each sequence without frames; None if there are
        none."""
        none = self._counts == 0
        return _FramesOfNone(self.whole, none.astype("i8")) if none.any() else None

    def publish(self, outputs: Iterable[Edge], named: Mapping[Edge, Origin], of_none: Mapping[Edge, Spec]) -> None:
        """Stores outputs as sequences in the batch. `named` gives the origins of an output's samples, `of_none` the
        frame specs of sequences without frames."""
        values, some = self.whole.values, self._counts > 0
        for e in outputs:
            rows = self.values[e]
            whole = self._sequences(rows.spec, of_none.get(e))
            tensors = whole.packed()
            tensors["data"][some] = rows.rows["data"][self._first]
            values[e] = rows.with_rows(whole, tensors, rows.owners, names_of(named.get(e), values))


class _FramesOfNone(FrameContext):
    __slots__ = ()

    def _frames_of(self, sequences: Batch) -> Batch:
        return expand(sequences, self._counts)


def _rows_of_argument(arg: Arg, batch: Batch, counts: np.ndarray, sample_of: np.ndarray) -> Batch:
    if has_frames(arg, batch):
        return Batch.from_array(frames_of_argument(arg, batch, counts))
    if not batch.spec.is_dense:  # vectors of different lengths
        return batch.take(sample_of)
    return Batch.from_array(np.repeat(batch.array(), counts, axis=0))
