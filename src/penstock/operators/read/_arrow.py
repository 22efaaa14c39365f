# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow tables as samples: the address of each row's value, as NumPy arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.rows import address

_INT64, _ADDRESS, _BYTE = np.dtype("i8"), np.dtype("u8"), np.dtype("u1")
_FLOATS_OF_BITS = {16: "f2", 32: "f4", 64: "f8"}


class Values(NamedTuple):
    """The values of a column: `address` (n,) and `length` (n,) in elements of `dtype`. `why`: reasons by row, for rows
    without a value. `paths`: by row, for a column {bytes, path} whose content is in a file."""

    dtype: np.dtype
    address: np.ndarray
    length: np.ndarray
    owner: Any  # keeps the memory alive
    why: dict[int, str]
    paths: dict[int, str]


def kind_of(name: str, type: Any) -> tuple[np.dtype, int | None]:
    """Type of a column's samples, and values per row (None if it varies). Raises ValueError for unsupported types."""
    import pyarrow.types as t

    if t.is_dictionary(type):
        return kind_of(name, type.value_type)
    if _is_file(type):
        return _BYTE, None
    if any(is_it(type) for is_it in _BYTES(t)):
        return _BYTE, None
    if t.is_list(type) or t.is_large_list(type) or t.is_fixed_size_list(type):
        dtype = _number(type.value_type)
        if dtype is not None:
            return dtype, type.list_size if t.is_fixed_size_list(type) else None
    else:
        dtype = _number(type)
        if dtype is not None:
            return dtype, 1
    raise ValueError(
        f"the column '{name}' is of the type {type}; bytes, strings, numbers, lists of numbers and {{bytes, path}} of "
        "Hugging Face's images and recordings can be read"
    )


def _BYTES(t: Any) -> tuple:
    views = (t.is_binary_view, t.is_string_view) if hasattr(t, "is_binary_view") else ()
    return (t.is_binary, t.is_large_binary, t.is_string, t.is_large_string, t.is_fixed_size_binary, *views)


def _is_file(type: Any) -> bool:
    """Whether the type is a struct {bytes, path}, in which Hugging Face's datasets store images and audio."""
    import pyarrow.types as t

    if not t.is_struct(type) or type.num_fields != 2 or {type[0].name, type[1].name} != {"bytes", "path"}:
        return False
    return bool(t.is_binary(type.field("bytes").type) or t.is_large_binary(type.field("bytes").type))


def _number(type: Any) -> np.dtype | None:
    import pyarrow.types as t

    if t.is_boolean(type):
        return np.dtype("?")
    if t.is_integer(type):
        return np.dtype(f"{'i' if t.is_signed_integer(type) else 'u'}{type.bit_width // 8}")
    return np.dtype(_FLOATS_OF_BITS[type.bit_width]) if t.is_floating(type) else None


def no_value(name: str) -> str:
    """Why a row of a column is a bad sample."""
    return f"the column '{name}' has no value (null) there"


def no_content(name: str) -> str:
    """The same for a column {bytes, path}."""
    return f"the column '{name}' has neither bytes nor a path there"


def values_of(name: str, column: Any) -> Values:
    """The values of a column (ChunkedArray) of a table."""
    import pyarrow.types as t

    if t.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    parts = [_of_array(name, chunk) for chunk in column.chunks if len(chunk)]
    if not parts:
        return Values(_BYTE, np.empty(0, _ADDRESS), np.empty(0, _INT64), None, {}, {})
    why, paths, n = {}, {}, 0
    for p in parts:
        why.update({n + i: text for i, text in p.why.items()})
        paths.update({n + i: text for i, text in p.paths.items()})
        n += len(p.length)
    return Values(
        parts[0].dtype,
        np.concatenate([p.address for p in parts]),
        np.concatenate([p.length for p in parts]),
        [p.owner for p in parts],
        why,
        paths,
    )


def _of_array(name: str, array: Any) -> Values:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as t

    type, n = array.type, len(array)
    if t.is_struct(type):
        content = _of_array(name, pc.struct_field(array, "bytes"))
        if not content.why:
            return content
        path, why, paths = pc.struct_field(array, "path"), {}, {}
        for i in content.why:
            text = path[i].as_py()
            if text:
                paths[i] = text
            else:
                why[i] = no_content(name)
        return content._replace(why=why, paths=paths)
    why = {} if not array.null_count else dict.fromkeys(np.flatnonzero(_is_null(array)).tolist(), no_value(name))
    if t.is_fixed_size_binary(type):
        begin = _data(array.buffers()[1]) + type.byte_width * array.offset
        at = begin + type.byte_width * np.arange(n, dtype=_ADDRESS)
        return Values(_BYTE, at, _where(why, np.full(n, type.byte_width, _INT64)), array, why, {})
    if any(is_it(type) for is_it in _BYTES(t)):
        if not (t.is_binary(type) or t.is_string(type) or t.is_large_binary(type) or t.is_large_string(type)):
            array = array.cast(pa.large_binary())
        is_large = t.is_large_binary(array.type) or t.is_large_string(array.type)
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, "i8" if is_large else "i4")[array.offset : array.offset + n + 1].astype(_INT64)
        at = np.uint64(_data(data)) + ends[:-1].astype(_ADDRESS)
        return Values(_BYTE, at, _where(why, np.diff(ends)), array, why, {})
    if t.is_list(type) or t.is_large_list(type) or t.is_fixed_size_list(type):
        return _of_lists(name, array, why)
    values = _numbers(array)
    at = np.uint64(address(values) if n else 0) + values.itemsize * np.arange(n, dtype=_ADDRESS)
    return Values(values.dtype, at, np.ones(n, _INT64), values, why, {})


def _of_lists(name: str, array: Any, why: dict[int, str]) -> Values:
    import pyarrow.types as t

    n = len(array)
    if t.is_fixed_size_list(array.type):
        size = array.type.list_size
        ends = size * np.arange(array.offset, array.offset + n + 1, dtype=_INT64)
    else:
        ends = array.offsets.to_numpy(zero_copy_only=False).astype(_INT64)
    child = array.values
    values = _numbers(child)
    if child.null_count:
        nulls = np.concatenate([np.zeros(1, _INT64), np.cumsum(_is_null(child))])
        inside = f"the list in the column '{name}' has an element without a value (null)"
        why = dict.fromkeys(np.flatnonzero(np.diff(nulls[ends])).tolist(), inside) | why
    at = np.uint64(address(values) if len(values) else 0) + (values.itemsize * ends[:-1]).astype(_ADDRESS)
    return Values(values.dtype, at, _where(why, np.diff(ends)), values, why, {})


def _numbers(array: Any) -> np.ndarray:
    """A contiguous, aligned array; nulls are unspecified."""
    dtype = _number(array.type)
    if dtype is None:
        raise ValueError(f"[internal error] numbers of the type {array.type}")
    if dtype.kind == "b":
        array = array.cast("uint8")
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    stored = np.dtype("u1") if dtype.kind == "b" else dtype
    values = np.frombuffer(buffer, stored, len(array), array.offset * stored.itemsize).view(dtype)
    return np.require(values, requirements=["C", "A"])


def _is_null(array: Any) -> np.ndarray:
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def _data(buffer: Any) -> int:
    return 0 if buffer is None else buffer.address


def _where(why: dict[int, str], length: np.ndarray) -> np.ndarray:
    """Sets the length of rows without a value to 0."""
    if why:
        length = length.copy()
        length[list(why)] = 0
    return length
