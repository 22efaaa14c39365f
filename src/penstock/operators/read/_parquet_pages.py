# SPDX-License-Identifier: Apache-2.0
"""Decodes Parquet pages natively into reused memory. pyarrow decodes the other columns (lists, booleans, other
encodings and compressions) and all metadata."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.kernels import ERROR_SIZE, library
from ...core.memory import Buffer, view
from ...core.rows import address
from ._arrow import Values, no_content, no_value

_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "ZSTD": 2}  # as in kernels/read/parquet.h
_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_UNKNOWN = 2
_BYTE = np.dtype("u1")


class _Chunk(ctypes.Structure):
    _fields_ = [
        *(("data", ctypes.c_void_p), ("size", ctypes.c_int64), ("n_rows", ctypes.c_int64)),
        *(("codec", ctypes.c_int32), ("width", ctypes.c_int32), ("most_defined", ctypes.c_int32)),
    ]


class _Values(ctypes.Structure):
    _fields_ = [
        *(("address", ctypes.c_void_p), ("length", ctypes.c_void_p)),
        *(("memory", ctypes.c_void_p), ("bytes", ctypes.c_int64)),
    ]


class Leaf(NamedTuple):
    """A stored column: its `number` in the file, and `width` in bytes of a value (0: each value has its own length)."""

    number: int
    width: int
    most_defined: int


class PlainColumn(NamedTuple):
    """A column whose pages can be decoded natively. `path`: the field of a column {bytes, path}."""

    name: str
    kind: tuple[np.dtype, int | None]
    content: Leaf
    path: Leaf | None


def plain_column(schema: Any, name: str, kind: tuple[np.dtype, int | None]) -> PlainColumn | None:
    """The column `name` of a file as samples of `kind`; None if pyarrow must read it."""
    found: dict[str, list[int]] = {}
    for number in range(len(schema)):
        found.setdefault(schema.column(number).path, []).append(number)
    leaves = [_leaf(schema, found.get(path, []), kind) for path in (name, f"{name}.bytes", f"{name}.path")]
    flat, content, path = leaves
    if flat and not (f"{name}.bytes" in found or f"{name}.path" in found):
        return PlainColumn(name, kind, flat, None)
    return PlainColumn(name, kind, content, path) if content and path and name not in found else None


def _leaf(schema: Any, numbers: list[int], kind: tuple[np.dtype, int | None]) -> Leaf | None:
    if len(numbers) != 1:
        return None
    column, (dtype, size) = schema.column(numbers[0]), kind
    of_bytes, stored = size is None and dtype == _BYTE, column.physical_type
    if column.max_repetition_level or not (of_bytes or size == 1):
        return None
    width = _WIDTHS.get(stored, 0)
    if stored == "FIXED_LEN_BYTE_ARRAY" and (of_bytes or dtype == np.float16):
        width = column.length
    if of_bytes:
        is_known = stored == "BYTE_ARRAY" or (stored == "FIXED_LEN_BYTE_ARRAY" and width > 0)
    else:
        is_known = width >= dtype.itemsize  # narrow integers are stored in the low bytes of wider ones
    return Leaf(numbers[0], width, column.max_definition_level) if is_known else None


Read = Callable[[int, int], np.ndarray]  # (offset, size in bytes) -> bytes that the result owns


def read_column(read: Read, size: int, row_group: Any, column: PlainColumn) -> tuple[Values, int] | None:
    """The values of a column in a row group, and their memory in bytes; None if pyarrow must read it. `size`: bytes of
    the file. Raises ValueError for damaged data."""
    found = _values(read, size, row_group, column.content, column.name)
    if found is None:
        return None
    at, length, owner, nbytes = found
    missing = np.flatnonzero(length < 0).tolist()
    length[missing] = 0
    why: dict[int, str] = {}
    paths: dict[int, str] = {}
    if column.path is None:
        why = dict.fromkeys(missing, no_value(column.name))
    elif missing:
        of_paths = _values(read, size, row_group, column.path, f"{column.name}.path")
        if of_paths is None:
            return None
        path_at, path_length, _kept, _ = of_paths
        for i in missing:
            if path_length[i] > 0:
                paths[i] = ctypes.string_at(int(path_at[i]), int(path_length[i])).decode()
            else:
                why[i] = no_content(column.name)
    dtype, count = column.kind
    if count == 1:
        length = np.ones(len(length), "i8")
        length[missing] = 0
    return Values(dtype, at, length, owner, why, paths), nbytes


def span(row_group: Any, leaf: Leaf) -> tuple[int, int]:
    """Offset of a column's pages in the file (-1 if unknown), and their size in bytes."""
    about = row_group.column(leaf.number)
    begins = [x for x in (about.dictionary_page_offset, about.data_page_offset) if x]
    return min(begins, default=-1), about.total_compressed_size


def is_sound(begin: int, n_bytes: int, size: int) -> bool:
    """Whether a span lies in a file of `size` bytes."""
    return begin >= 0 and 0 <= n_bytes <= size - begin


def _values(
    read: Read, size: int, row_group: Any, leaf: Leaf, name: str
) -> tuple[np.ndarray, np.ndarray, Any, int] | None:
    """Address and length in bytes of each row's value (length -1 if null), the owner of the memory, and its size in
    bytes."""
    about, n = row_group.column(leaf.number), row_group.num_rows
    codec = _CODECS.get(about.compression)
    if codec is None or about.file_path:
        return None
    begin, n_bytes = span(row_group, leaf)
    if not is_sound(begin, n_bytes, size) or about.num_values != n:
        raise ValueError(
            f"the column '{name}' has {about.num_values} values of {n} rows in {n_bytes} bytes from byte {begin} on of "
            f"{size}"
        )
    data = read(begin, n_bytes)
    at, length = np.empty(n, "u8"), np.empty(n, "i8")
    chunk = _Chunk(address(data) if n_bytes else 0, n_bytes, n, codec, leaf.width, leaf.most_defined)
    values = _Values(address(at) if n else 0, address(length) if n else 0)
    error = ctypes.create_string_buffer(ERROR_SIZE)
    outcome = library().parquet_column(ctypes.addressof(chunk), ctypes.addressof(values), ctypes.addressof(error))
    memory = Buffer.at(values.memory, values.bytes) if values.memory else None
    if outcome == _UNKNOWN:
        return None
    if outcome:
        raise ValueError(f"the column '{name}', {error.value.decode('utf-8', 'replace')}")
    return (at, length, data, n_bytes) if codec == 0 else (at, length, memory, values.bytes)


def read_file(file: Any, begin: int, size: int) -> np.ndarray:
    """Reads `size` bytes of a file from `begin` on, into memory of the pool. Raises ValueError if the file is
    shorter."""
    buffer = Buffer(size)
    data = view(buffer.address, (size,), _BYTE, buffer)
    file.seek(begin)
    done = 0
    while done < size:
        n = file.readinto(data[done:])
        if not n:
            raise ValueError(f"the file ends at byte {begin + done}, within a column")
        done += n
    return data
