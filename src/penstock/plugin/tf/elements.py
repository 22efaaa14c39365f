# SPDX-License-Identifier: Apache-2.0
"""Elements of a dataset: the requested types and shapes, and conversion of batches."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...tensors import TensorListCPU
from ...types import to_numpy_type
from ..dense_batches import dense, not_dense


def fitted(shape: tuple[int, ...], wanted: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """Removes extents of 1 until the shape matches the wanted one; None if this is impossible.

    >>> fitted((8, 1), (8,)), fitted((1, 4, 1, 3), (None, 4, 3)), fitted((8, 2), (8,))
    ((8,), (1, 4, 3), None)
    """
    if wanted is None or len(shape) == len(wanted) and all(w in (None, s) for s, w in zip(shape, wanted)):
        return shape
    if len(shape) <= len(wanted):
        return None
    if wanted and wanted[0] in (None, shape[0]):
        rest = fitted(shape[1:], wanted[1:])
        if rest is not None:
            return shape[0], *rest
    return fitted(shape[1:], wanted) if shape[0] == 1 else None


class Elements:
    """The structure of the elements: a type and a shape per output, in the user's nesting.

    `output_dtypes` is a type or a nested structure of types; lists count as tuples. `output_shapes` has the same
    structure, with None for unknown extents. Without `output_dtypes`, `learn` sets the types from a batch.
    """

    def __init__(self, output_dtypes: Any, output_shapes: Any, n_outputs: int):
        self.n_outputs = n_outputs
        self.types: list[tf.DType] | None = None
        self.structure: Any = tuple(range(n_outputs)) if n_outputs > 1 else 0
        if output_dtypes is not None:
            self.structure = _tuples(output_dtypes)
            self.types = [_type(t) for t in tf.nest.flatten(self.structure)]
            if len(self.types) != n_outputs:
                raise ValueError(f"output_dtypes has {len(self.types)} types, but the pipeline has {n_outputs} outputs")
        self.ranks: list[int | None] = [None] * n_outputs
        self.shapes = [None] * n_outputs if output_shapes is None else self._shapes(output_shapes)
        self._fitted = functools.lru_cache(maxsize=256)(fitted)

    def _shapes(self, given: Any) -> list[tuple[int | None, ...] | None]:
        parts: list[Any]
        if isinstance(self.structure, dict):
            if not isinstance(given, dict) or given.keys() != self.structure.keys():
                raise ValueError(
                    f"output_shapes needs the keys of output_dtypes, {sorted(self.structure)}; got {given!r}"
                )
            parts = [given[k] for k in sorted(given)]
        elif not isinstance(self.structure, tuple):
            parts = [given[0]] if _is_shape(given) is None and len(given) == 1 else [given]
        elif self.n_outputs == 1 and _is_shape(given) is not None:
            parts = [given]
        else:
            if not isinstance(given, (tuple, list)) or len(given) != self.n_outputs:
                raise ValueError(
                    f"output_shapes takes a shape for each of the {self.n_outputs} outputs of the pipeline; got "
                    f"{given!r}"
                )
            parts = list(given)
        return [_shape(s, i) for i, s in enumerate(parts)]

    def learn(self, outputs: Sequence[Any]) -> None:
        """Sets types, unless given, and numbers of dimensions from the first batch."""
        if self.types is None:
            self.types = [tf.as_dtype(np.dtype(to_numpy_type(o.dtype))) for o in outputs]
        self.ranks = [1 + o.ndim() for o in outputs]

    @property
    def spec(self) -> Any:
        """The specification of an element."""
        assert self.types is not None
        shapes: list[Any] = [
            [None] * rank if shape is None and rank is not None else shape
            for shape, rank in zip(self.shapes, self.ranks)
        ]
        return self.packed([tf.TensorSpec(tf.TensorShape(s), t) for s, t in zip(shapes, self.types)])

    def packed(self, values: Sequence[Any]) -> Any:
        """The outputs' values in the structure of an element."""
        return tf.nest.pack_sequence_as(self.structure, values)

    def of(self, outputs: Sequence[Any], keep: int) -> Any:
        """An element of the first `keep` samples, which shares their memory."""
        if self.types is None:
            self.learn(outputs)
        return self.packed([self.one(o, i, keep) for i, o in enumerate(outputs)])

    def type_of(self, i: int) -> tf.DType:
        assert self.types is not None
        return self.types[i]

    def one(self, output: Any, i: int, keep: int) -> np.ndarray:
        """The first `keep` samples of output i."""
        array = _host_array(output, i)[:keep]
        check_type(i, array.dtype, self.type_of(i))
        shape = self._fitted(array.shape, self.shapes[i])
        if shape is None:
            raise ValueError(
                f"output {i} has the shape {array.shape}, output_shapes asks for {_text(self.shapes[i])}. The first "
                f"extent is the batch: with None there it may differ from batch to batch"
            )
        return array.reshape(shape)

    def wants_batches_of(self, batch_size: int) -> bool:
        """Whether a shape requires batches of this size."""
        return any(shape and shape[0] == batch_size for shape in self.shapes)

    def check_batches(self, batch_size: int, ragged_end: bool) -> None:
        """Raises ValueError if the shapes do not fit future batches."""
        for i, shape in enumerate(self.shapes):
            if not shape or shape[0] is None or batch_size == 1:
                continue
            if shape[0] not in (1, batch_size):
                raise ValueError(
                    f"output_shapes asks for batches of {shape[0]} in output {i}, batch_size is {batch_size}"
                )
            if shape[0] == batch_size and ragged_end:
                raise ValueError(
                    f"output_shapes asks for batches of {batch_size} in output {i}, but the last batch of an epoch is "
                    "smaller: use None for the first extent, or last_batch_policy='drop' or 'fill'"
                )


def _host_array(output: Any, i: int) -> np.ndarray:
    """A batch as one array in host memory. Not copied from CPU pipelines."""
    if not isinstance(output, TensorListCPU):
        if not output.is_dense_tensor():
            raise not_dense(output.shape(), str(i))
        output = output.as_cpu()
    return dense(output, str(i))


def check_type(i: int, got: np.dtype, wanted: tf.DType) -> None:
    if got != wanted.as_numpy_dtype:
        raise TypeError(
            f"output {i} is of type {got.name}, output_dtypes asks for {wanted.name}: ask for tf.{got.name}, or "
            "convert in the pipeline, by fn.cast"
        )


def _tuples(value: Any) -> Any:
    """Converts lists to tuples, as TensorFlow would treat lists as tensors."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return tuple(_tuples(v) for v in value)
    return {k: _tuples(v) for k, v in value.items()} if isinstance(value, dict) else value


def _type(value: Any) -> tf.DType:
    if isinstance(value, tf.DType):
        return value
    try:
        return tf.as_dtype(np.dtype(to_numpy_type(value)) if type(value).__name__ == "DALIDataType" else value)
    except (TypeError, ValueError):
        raise TypeError(
            f"output_dtypes takes a tf.DType or a tuple of them, one for each output; got {value!r}"
        ) from None


def _is_shape(value: Any) -> tuple[int | None, ...] | None:
    """The value as a shape, if it is one."""
    if isinstance(value, tf.TensorShape):
        return tuple(value) if value.rank is not None else ()
    items = [value] if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else value
    if not isinstance(items, (list, tuple)):
        return None
    is_extent = [v is None or isinstance(v, (int, np.integer)) and not isinstance(v, bool) and v >= 0 for v in items]
    return tuple(None if v is None else int(v) for v in items) if all(is_extent) else None


def _shape(value: Any, i: int) -> tuple[int | None, ...] | None:
    if value is None or isinstance(value, tf.TensorShape) and value.rank is None:
        return None
    shape = _is_shape(value)
    if shape is None:
        raise ValueError(
            f"output_shapes takes shapes such as (batch, 224, 224, 3), with None for what is not known; got {value!r} "
            f"for output {i}"
        )
    return shape


def _text(shape: Sequence[int | None] | None) -> str:
    return "(" + ", ".join(map(str, shape or ())) + ("," if shape and len(shape) == 1 else "") + ")"
