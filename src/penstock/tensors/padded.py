# SPDX-License-Identifier: Apache-2.0
"""Converts batches of samples of different extents to a padded array and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.batch import Batch, Spec
from ..core.kernels import library
from ..core.rows import address

_INT64 = np.dtype("i8")


def shapes(output: Any, keep: int | None = None) -> np.ndarray:
    """Shapes (n, ndim), int64, of the first `keep` samples of a batch on any device."""
    return np.asarray(output._batch.spec.shape[:keep])


def length_axis(output: Any) -> int:
    """The axis of samples' lengths: time ("t") or frames ("F") in the layout, otherwise the first axis."""
    layout = output._batch.spec.layout
    return next((layout.index(axis) for axis in "tF" if axis in layout), 0)


def lengths(output: Any, keep: int | None = None) -> np.ndarray:
    """Extents (n,), int64, of the samples along `length_axis`. Scalars have length 1."""
    shape = shapes(output, keep)
    return np.array(shape[:, length_axis(output)] if shape.shape[1] else np.ones(len(shape)), _INT64)


def padded_extents(outputs: Sequence[Any], keeps: Sequence[int | None], multiple: int) -> tuple[int, ...]:
    """The smallest extents that fit all samples of some batches, with a length that is a multiple of `multiple`."""
    extents = np.concatenate([shapes(o, k) for o, k in zip(outputs, keeps)]).max(axis=0, initial=0)
    if len(extents):
        axis = length_axis(outputs[0])
        extents[axis] = -(-extents[axis] // multiple) * multiple
    return tuple(map(int, extents))


def padded(output: Any, extents: tuple[int, ...], value: float, keep: int | None = None) -> np.ndarray:
    """An array (n, *extents) of the first `keep` samples of a batch in host memory, padded at the end of all axes with
    `value`."""
    batch: Batch = output._batch
    dtype = batch.spec.dtype
    with np.errstate(all="ignore"):
        fill = np.array([value]).astype(dtype)
    if dtype.kind != "f" and fill[0] != value:
        raise ValueError(f"padding_value={value!r} is not a value of the type {dtype.name}")
    n = len(shapes(output, keep))
    out = Batch.allocate(Spec.uniform(n, extents, dtype)).array()
    if out.size:
        shape = np.array(extents, _INT64)
        library().pad_rows(address(out), address(shape), batch.rows_address, n, address(fill))
    return out
