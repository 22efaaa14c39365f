# SPDX-License-Identifier: Apache-2.0
"""Converts the arguments of a node to the columns that operators use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import rng
from ..core.batch import Batch
from ..core.op import Arg, Arguments
from ..core.plan_memory import BatchContext
from ..graph.node import DataNode, Node, edge_of

# Maximum total rows of the constant columns kept.
_KEPT_ROWS = 16384


class Resolver:
    """Makes the `Arguments` of one node for a batch. `ordinal` distinguishes the operators of a pipeline that draw
    random numbers. Constant columns are made once per batch size."""

    def __init__(self, node: Node, seed: int, ordinal: int):
        self.node = node
        op = node.op
        explicit = op.values.get("seed", -1)
        self.key = rng.key(explicit, None) if explicit not in (-1, None) else rng.key(seed, ordinal)
        self.fixed = {n: v for n, v in op.values.items() if not (n in op.schema and op.schema[n].tensor)}
        self.fixed["given"] = op.given
        self.constants = {
            n: op.schema[n]
            for n, v in op.values.items()
            if n in op.schema and op.schema[n].tensor and n not in node.args
        }
        # Arguments that are data, with their edges; None for lists that contain data.
        self._data = [(n, op.schema[n], edge_of(d) if isinstance(d, DataNode) else None) for n, d in node.args.items()]
        self.values: dict[int, dict[str, Any]] = {}
        self._kept = 0  # total rows of `values`

    def resolve(self, rows: BatchContext) -> Arguments:
        n, values = rows.n, rows.values
        values_of_rows = self.values.get(n)
        if values_of_rows is None:
            columns = {
                name: _constant_column(arg, self.node.op.values[name], n) for name, arg in self.constants.items()
            }
            values_of_rows = {**self.fixed, **columns, "memo": {}}
            if self._kept <= _KEPT_ROWS:
                self._kept += n
                self.values[n] = values_of_rows
        a = Arguments(n, rng.Random(self.key, rows.epoch, rows.position), values_of_rows)
        if self._data:
            a.memo = {}
        for name, arg, edge in self._data:
            if edge is not None and arg.ragged and not values[edge].spec.is_dense:
                column, lengths = _ragged_column(arg, values[edge])
                a.row_lengths = {**a.row_lengths, name: lengths}
            else:
                column = self.column(name, n, values)
            setattr(a, name, column)
        return a

    def of_samples(self, name: str, n: int, values: Mapping[tuple[int, int], Batch]) -> list[np.ndarray] | None:
        """The values of an argument for each sample; None if it is not given."""
        data = self.node.args.get(name)
        if isinstance(data, DataNode):
            batch = values[edge_of(data)]
            return [batch.sample(i) for i in range(n)]
        if data is not None:
            return list(self.column(name, n, values))
        value = self.node.op.values.get(name)
        return None if value is None else [np.atleast_1d(value)] * n

    def column(self, name: str, n: int, values: Mapping[tuple[int, int], Batch]) -> np.ndarray:
        """The column of an argument that is data, or a list that contains data."""
        data, arg = self.node.args[name], self.node.op.schema[name]
        if isinstance(data, DataNode):
            return _data_column(arg, values[edge_of(data)], n)
        parts = [
            _data_column(arg, values[edge_of(d)], n, scalar=True)
            if isinstance(d, DataNode)
            else np.full(n, d, arg.column_type)
            for d in data
        ]
        return np.stack(parts, axis=1)


def data_of(node: Node) -> list[tuple[Arg, tuple[int, int]]]:
    """The arguments that are data, with their edges."""
    return [
        (node.op.schema[name], edge_of(d))
        for name, data in node.args.items()
        for d in (data if isinstance(data, list) else [data])
        if isinstance(d, DataNode)
    ]


def _constant_column(arg: Arg, value: Any, rows: int) -> Any:
    """Returns a read-only column, as it is shared by many batches and argument rows recognize it as unchanged."""
    if value is None:
        return None
    if arg.type is str:
        return value
    column = np.empty((rows, len(value)) if arg.vector else rows, arg.column_type)
    column[...] = value
    column.setflags(write=False)
    return column


def has_frames(arg: Arg, batch: Batch) -> bool:
    return arg.per_frame and batch.spec.layout.startswith("F")


def _data_column(arg: Arg, batch: Batch, n: int, scalar: bool = False) -> np.ndarray:
    """Returns a column: (rows,) for a scalar argument, (rows, k) for a vector."""
    if arg.is_index:
        _check_index(batch)
    is_vector = (arg.vector or arg.ragged) and not scalar
    column: np.ndarray
    if batch.spec.is_dense:  # the usual case
        column = batch.array()
        if column.ndim == 1 + is_vector and column.dtype == arg.column_type:
            return column
    if not batch.spec.is_dense:
        raise ValueError(
            f"argument '{arg.name}' needs the same number of values for every sample; got shapes "
            f"{batch.spec.shape.tolist()[:4]}..."
        )
    values = batch.array()
    per_sample = math.prod(values.shape[1:])
    if is_vector:
        column = values.reshape(n, per_sample)
    elif per_sample == 1:
        column = values.reshape(n)
    else:
        raise ValueError(f"argument '{arg.name}' takes one value per sample; got samples of shape {values.shape[1:]}")
    return _cast(arg, column)


def _check_index(batch: Batch) -> None:
    spec = batch.spec
    if spec.ndim:
        raise ValueError(
            f"Array indices must be scalar (0D). Got {spec.ndim}D tensor; fn.squeeze or fn.reshape(x, shape=[]) drops "
            "the dimensions of one element"
        )
    if spec.dtype.kind not in "iu":
        raise ValueError(f"Array index must be of integral type. Got: {spec.dtype.name}; fn.cast converts it")


def frames_of_argument(arg: Arg, batch: Batch, counts: np.ndarray) -> np.ndarray:
    """The values of all frames, shape (rows, ...)."""
    frames = batch.spec.shape[:, 0]
    wrong = (frames != counts) & (frames != 1)  # one value applies to all frames of its sample
    if wrong.any():
        i = int(wrong.nonzero()[0][0])
        raise ValueError(
            f"argument '{arg.name}' has {frames[i]} values for the {counts[i]} frames of sample {i}; it "
            "needs one per frame, or one for all"
        )
    if (batch.spec.shape[:, 1:] != batch.spec.shape[:1, 1:]).any():
        raise ValueError(
            f"argument '{arg.name}' needs the same number of values for every frame; got shapes "
            f"{batch.spec.shape.tolist()[:4]}..."
        )
    flat = np.concatenate([batch.sample(i) for i in range(len(batch))]) if len(batch) else np.empty(0)
    if not (arg.vector or arg.ragged) and math.prod(flat.shape[1:]) != 1:
        raise ValueError(f"argument '{arg.name}' takes one value per frame; got frames of shape {flat.shape[1:]}")
    if (frames != counts).any():
        flat = np.repeat(flat, np.repeat(np.where(frames == counts, 1, counts), frames), axis=0)
    return flat


def _ragged_column(arg: Arg, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Returns vectors of different lengths, padded with zeros to (rows, k), and their lengths (rows,)."""
    lengths = batch.spec.volumes()
    column = np.zeros((len(batch), int(lengths.max())), batch.spec.dtype)
    for i, length in enumerate(lengths):
        column[i, :length] = batch.sample(i).ravel()
    return _cast(arg, column), lengths


def _cast(arg: Arg, column: np.ndarray) -> np.ndarray:
    wanted = arg.column_type
    if column.dtype == wanted:
        return column
    if wanted.kind in "i" and column.dtype.kind == "f":
        raise ValueError(f"argument '{arg.name}' takes integers; got {column.dtype.name}; cast it first (fn.cast)")
    if wanted.kind == "i" and column.size and not np.can_cast(column.dtype, wanted):
        least, most = int(column.min()), int(column.max())
        if least < np.iinfo(wanted).min or most > np.iinfo(wanted).max:
            bits, beyond = 8 * wanted.itemsize, most if most > np.iinfo(wanted).max else least
            raise ValueError(f"argument '{arg.name}' takes integers of {bits} bits; got {beyond}")
    return column.astype(wanted, copy=False)
