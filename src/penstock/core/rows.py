# SPDX-License-Identifier: Apache-2.0
"""The rows that kernels read: per sample a row of arguments, and a row per tensor with its address."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

MAX_DIMS = 8
TENSOR = np.dtype([("data", "u8"), ("shape", "i8", MAX_DIMS), ("ndim", "i4"), ("dtype", "i4")], align=True)


# NumPy's ABI: an array object is a Python object header followed by the address of the first element.
HEAD = object.__basicsize__
_pointer = ctypes.c_void_p.from_address


def address(array: np.ndarray) -> int:
    """Address of the first element of a contiguous array; seven times faster than `array.ctypes.data`."""
    return _pointer(id(array) + HEAD).value or 0


def _is_where_it_says() -> bool:
    if sys.implementation.name != "cpython":
        return False
    arrays = [
        np.zeros((2, 3)),
        np.zeros(5, "u1")[2:],
        np.zeros((0, 2)),
        np.zeros((), "f4"),
        np.frombuffer(b"text", "u1"),
    ]
    return all(address(a) == a.ctypes.data for a in arrays)


if not _is_where_it_says():

    def address(array: np.ndarray) -> int:
        """Address of the first element of a contiguous array."""
        return array.ctypes.data


# NumPy releases the GIL to zero more than a kilobyte and to copy more than 500 elements. In pipelines with several
# threads another one often takes it then, and getting it back takes far longer than the work. Bytes are made without.
_MOST = 1 << 16  # bytes that take less time than getting the GIL back


def allocate(shape: int | tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, int]:
    """Returns a new array of zeros and the address of its first element."""
    nbytes = (shape if isinstance(shape, int) else prod(shape)) * dtype.itemsize
    array = np.ndarray(shape, dtype, bytearray(nbytes)) if 0 < nbytes <= _MOST else np.zeros(shape, dtype)
    return array, address(array)


def reserve(shape: int | tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, int]:
    """As `allocate`, but uninitialized."""
    array = np.empty(shape, dtype)
    return array, address(array)


def copied(array: np.ndarray) -> np.ndarray:
    """A read-only copy of an array of numbers."""
    if array.size >= 500:
        return np.ndarray(array.shape, array.dtype, array.tobytes())
    copy = array.copy()
    copy.setflags(write=False)
    return copy


@lru_cache(16)
def indices(n: int) -> np.ndarray:
    """The integers below n."""
    numbers = np.arange(n)
    numbers.setflags(write=False)
    return numbers


def check_dims(ndim: int, error: type[ValueError] = ValueError) -> None:
    """Raises `error` if samples have more dimensions than a row can describe."""
    if ndim > MAX_DIMS:
        raise error(f"samples of {ndim} dimensions are not possible; at most {MAX_DIMS} are")


class ArgumentRows:
    """Argument rows of a kernel for `n` samples. In the record type, the fields `pointers` are addresses."""

    __slots__ = ("address", "array", "pointers", "views")

    def __init__(self, n: int, record: np.dtype, pointers: frozenset[str]):
        self.array, self.address = allocate(n, record)
        self.pointers = pointers
        self.views = {name: self.array[name] for name in record.names or ()}

    def fill(self, columns: Mapping[str, Any]) -> list[np.ndarray]:
        """Writes columns (n,) or (n, k), or constants for all rows. A column with fewer values than the field is padded
        with zeros; fields that are not named are zero. Called once.

        A pointer field takes an array of shape (n, ...) and points each row at its part, or of shape (1, ...) to share
        it. Returns the arrays that must stay alive while the rows are used.
        """
        alive = []
        for field, column in columns.items():
            rows = self.views[field]
            if field in self.pointers:
                values = np.ascontiguousarray(column)
                alive.append(values)
                step = values.strides[0] if len(values) != 1 else 0
                rows[...] = np.uint64(address(values)) + np.arange(len(rows), dtype="u8") * np.uint64(step)
            elif rows.ndim == 2 and getattr(column, "ndim", 0) == 2:
                rows[:, : column.shape[1]] = column
            else:
                rows[...] = column
        return alive
