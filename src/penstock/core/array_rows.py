# SPDX-License-Identifier: Apache-2.0
"""Converts a list of NumPy arrays in one native call, which reads addresses and extents from the array objects."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from . import dtypes
from .kernels import library
from .rows import HEAD, MAX_DIMS, TENSOR, address, allocate

_TYPES = {np.dtype(t): int(dtypes.from_numpy(np.dtype(t))) for t in "u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 ?".split()}
_INT64 = np.dtype("i8")


def rows_of(arrays: Sequence[Any]) -> tuple[np.ndarray, int, np.ndarray] | None:
    """Returns (tensor rows, their address, shapes (n, ndim)) if all arrays are contiguous and have the same type and
    number of dimensions. None otherwise, or if an item is not a NumPy array."""
    if not arrays or type(arrays[0]) is not np.ndarray or not _can_be_read():
        return None
    first = arrays[0]
    if first.ndim > MAX_DIMS or first.dtype not in _TYPES:
        return None
    return _rows(arrays, first)


def _rows(arrays: Sequence[Any], first: np.ndarray) -> tuple[np.ndarray, int, np.ndarray] | None:
    n, ndim = len(arrays), first.ndim
    rows, at = allocate(n, TENSOR)
    shapes, at_shapes = allocate((n, ndim), _INT64)
    objects, dtype = np.fromiter(map(id, arrays), _INT64, n), first.dtype
    about = id(np.ndarray), id(dtype), ndim, _TYPES[dtype]
    alike = library().rows_of_arrays(address(objects), n, HEAD, *about, at, at_shapes)
    return (rows, at, shapes) if alike else None


@cache
def _can_be_read() -> bool:
    """Whether this interpreter's arrays have the layout of NumPy's ABI."""
    if sys.implementation.name != "cpython":
        return False
    a, b = np.zeros((3, 1, 5), "f4"), np.zeros((2, 7, 4), "f4")
    found = _rows([a, b], a)
    if found is None or _rows([a, b.T], a) or _rows([a, b[0]], a) or _rows([a, b.astype("i4")], a):
        return False
    return found[0]["data"].tolist() == [address(a), address(b)] and found[2].tolist() == [[3, 1, 5], [2, 7, 4]]
