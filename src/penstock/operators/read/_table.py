# SPDX-License-Identifier: Apache-2.0
"""Runs native scanners, which return columns for a whole file, such as positions of records."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from ...core.kernels import library
from ...core.storage import is_url, scanning

_MOST_COLUMNS, _ERROR_SIZE = 24, 1024


class _Column(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_int64), ("room", ctypes.c_int64)]


class _Table(ctypes.Structure):
    _fields_ = [("columns", _Column * _MOST_COLUMNS), ("error", ctypes.c_char * _ERROR_SIZE)]


def scan(name: str, path: bytes, *arguments: Any, **columns: str) -> dict[str, np.ndarray]:
    """Runs the native scanner `name` on the file or URL `path`. `columns`: names and element types of its arrays, in
    the scanner's order. Raises ValueError with its reason."""
    table = _Table()
    with scanning(is_url(path)):
        failed = getattr(library(), name)(path, *arguments, ctypes.addressof(table))
    if failed:
        raise ValueError(table.error.decode("utf-8", "replace"))
    return {key: _array(column, dtype) for column, (key, dtype) in zip(table.columns, columns.items())}


def _array(column: _Column, dtype: str) -> np.ndarray:
    if not column.data:
        return np.empty(0, dtype)
    block = (ctypes.c_char * column.bytes).from_address(column.data)
    weakref.finalize(block, library().table_free, column.data).atexit = False
    return np.frombuffer(block, dtype)
