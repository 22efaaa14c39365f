# SPDX-License-Identifier: Apache-2.0
"""How rules of operators reach native code: at once, or on record, so that the plan of a later batch of the same kind
can be made without them, by calling the same functions again on the same memory (exec/cpu/replay.py)."""

from __future__ import annotations

import ctypes
from bisect import bisect_right, insort
from functools import cache
from typing import Any

import numpy as np

from .columns import Column, constant, plain, written
from .dtypes import from_numpy
from .kernels import library
from .rows import address, allocate


class Native:
    """Calls native functions with columns."""

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, int]:
        """A new array, filled with zeros, and its address."""
        return allocate(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """A new array for a rule to write to."""
        return np.zeros(shape, dtype)

    def cosine_and_sine(self, radians: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of float64, (n,) each."""
        (cosine, at_cosine), (sine, at_sine) = (self.allocate(radians.shape, radians.dtype) for _ in range(2))
        self.call("cosines_and_sines", radians, radians.size, at_cosine, at_sine)
        return cosine, sine

    def constant(self, x: Any) -> Any:
        """What a rule made of numbers that are the same for all batches of a kind; what it computes of that is, too."""
        return constant(x)

    def call(self, name: str, *arguments: Any) -> int:
        """The result of a function of `library()`. Arrays are read only, in row-major order; what is written to is
        given by its address."""
        return getattr(library(), name)(*[x.tobytes() if type(x) is np.ndarray else x for x in arguments])

    def assign(self, to: np.ndarray, values: np.ndarray) -> None:
        """Writes values to memory of `allocate`, (n,) or (n, k)."""
        to[...] = values

    def sum(self, x: np.ndarray, y: np.ndarray, sign: int = 1) -> np.ndarray:
        """x + sign * y, of int64."""
        return x + y if sign > 0 else x - y

    def expect(self, column: np.ndarray) -> None:
        """What a rule does in Python depends on the values of this column (n,)."""

    def is_constant(self, column: np.ndarray) -> bool:
        """Whether it is the same for every batch: it can't be written to."""
        return not column.flags.writeable

    def constant_if(self, result: np.ndarray, *columns: np.ndarray) -> np.ndarray:
        """What was computed from columns, as a constant if they are constants."""
        if all(map(self.is_constant, columns)):
            result.setflags(write=False)
        return result


IMMEDIATE = Native()

_INT64 = np.dtype("i8")
_CONVERTED = frozenset(np.dtype(t) for t in ("u1", "i4", "i8", "u8", "f4", "f8", "?"))


class _Recorded(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("result", ctypes.c_int64)]


class Recorder(Native):
    """Also keeps the calls. `fault` says why they can't be replayed, if they can't: that a column was computed from
    data in a way that is not on record, for instance. Its arrays are `Column`s: what NumPy computes of them is on
    record, too, as long as it `is_open`; they can be written to by that and by the calls only."""

    def __init__(self) -> None:
        self.fault = ""
        self.is_open = True
        self._calls: list[tuple[str, list[int], int]] = []
        self._alive: list[Any] = []
        self._blocks: list[tuple[int, int]] = []  # where arrays begin and end, in order

    def memory(self, shape: int | tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, int]:
        """As `allocate`, for those who fill it for each batch."""
        array, at = allocate(shape, dtype)
        self._alive.append(array)
        if array.nbytes:
            insort(self._blocks, (at, at + array.nbytes))
        return array, at

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, int]:
        array, at = self.memory(shape, dtype)
        column = array.view(Column)
        column.setflags(write=False)
        column.record = self
        return column, at

    def copied(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A column with these values, and its memory, to be filled for each batch."""
        memory, _ = self.memory(array.shape, array.dtype)
        memory[...] = array
        column = memory.view(Column)
        column.setflags(write=False)
        column.record = self
        return memory, column

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        return self.filled_with(shape, np.dtype(dtype), 0)

    def filled_with(self, shape: int | tuple[int, ...], dtype: np.dtype, value: Any) -> Any:
        """A new column of one value, or (None) of what is going to be written there."""
        column, _ = self.allocate(shape, dtype)
        if value is not None and column.size:
            column[...] = value
        return column

    def is_made(self, array: np.ndarray) -> bool:
        """Whether replayed calls make it."""
        at = array.__array_interface__["data"][0]
        i = bisect_right(self._blocks, (at, 1 << 64)) - 1
        return i >= 0 and at < self._blocks[i][1]

    def is_constant(self, column: np.ndarray) -> bool:
        base: Any = column
        while isinstance(base, np.ndarray):  # a view may be less than what it is a view of
            if base.flags.writeable:
                return False
            base = base.base
        return not self.is_made(column)

    def check(self, array: Any, what: str) -> None:
        """A fault if replayed calls don't give an array the right values."""
        if self.fault or not isinstance(array, np.ndarray) or array.size == 0:
            return
        if not (self.is_made(array) or self.is_constant(array)):
            self.fault = f"{what} is computed from data"

    def constant(self, x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        if not self.is_constant(x):
            x = x.copy() if x.base is not None else x
            x.setflags(write=False)
        column = x.view(Column)
        column.record = self
        return column

    def column(self, x: np.ndarray) -> Any:
        """The same memory, on record."""
        if not self.is_made(x):
            self.check(x, "a column")
            return self.constant(x)
        column = x.view(Column)
        column.record = self
        return column

    def adopt(self, array: np.ndarray) -> None:
        """Memory that is written to by calls on record, or is the same for all batches."""
        at = array.__array_interface__["data"][0]
        self._alive.append(array)
        insort(self._blocks, (at, at + array.nbytes))

    def unknown(self, what: str, result: Any) -> Any:
        """The result of what can't be replayed."""
        self.fault = self.fault or f"{what} is not on record"
        return result

    def alive(self, what: Any) -> None:
        """Keeps memory that calls are given."""
        self._alive.append(what)

    def native(self, name: str, *values: int) -> int:
        """Calls with addresses and numbers."""
        result = getattr(library(), name)(*values)
        self._calls.append((name, list(values), int(result or 0)))
        return result

    def expect_all(self, column: np.ndarray) -> None:
        """The values of a column are expected of later batches."""
        if not column.flags.c_contiguous:
            column = np.stack([column])
        expected = plain(column).copy()
        self._alive += [plain(column), expected]
        at, to = (x.__array_interface__["data"][0] for x in (column, expected))
        self.native("same_column", at, column.itemsize, column.itemsize, column.size, to)

    def call(self, name: str, *arguments: Any) -> int:
        return self.native(name, *[self._value(name, x) for x in arguments])

    def _value(self, name: str, x: Any) -> int:
        if isinstance(x, bytes):
            self.fault = self.fault or f"what {name} is given is computed from data"
            self._alive.append(x)
            return ctypes.cast(ctypes.c_char_p(x), ctypes.c_void_p).value or 0
        if not isinstance(x, np.ndarray):
            return 0 if x is None else int(x)
        self.check(x, f"what {name} is given")
        if self.is_constant(x):
            x = np.ascontiguousarray(x)
        elif not x.flags.c_contiguous:
            whole, _ = self.allocate(x.shape, x.dtype)
            self.assign(whole, x)
            x = whole
        self._alive.append(plain(x))
        return address(x)

    def assign(self, to: np.ndarray, values: np.ndarray) -> None:
        self.check(values, "a column")
        if to.ndim > 2 or to.shape != values.shape or not {to.dtype, values.dtype} <= _CONVERTED:
            self.unknown(f"writing {values.dtype.name} {values.shape} to {to.dtype.name} {to.shape}", None)
            written(to)[...] = plain(values)
            return
        self._alive += [plain(to), plain(values)]
        self.call("assign_columns", *_layout(to), *_layout(values), len(to), to.shape[1] if to.ndim == 2 else 1)

    def sum(self, x: np.ndarray, y: np.ndarray, sign: int = 1) -> np.ndarray:
        out, at = self.allocate(x.shape, _INT64)
        self.call("sum_columns", x, y, x.size, sign, at)
        return out

    def expect(self, column: np.ndarray) -> None:
        self.check(column, "a column")
        self._alive.append(plain(column))
        expected = plain(column).copy()
        expected.setflags(write=False)
        at = column.__array_interface__["data"][0]
        self.call("same_column", at, column.strides[0], column.itemsize, len(column), expected)

    def end(self) -> tuple[int, int, list[Any]]:
        """The calls as `replay` takes them: address, number, and what has to be kept alive."""
        self.is_open = False
        calls = (_Recorded * len(self._calls))()
        alive = [calls, *self._alive]
        for call, (name, values, result) in zip(calls, self._calls):
            arguments = (ctypes.c_int64 * max(1, len(values)))(*values)
            alive.append(arguments)
            call.function = _address_of(name)
            call.arguments, call.result = ctypes.addressof(arguments), result
        return ctypes.addressof(calls), len(calls), alive


@cache
def _address_of(name: str) -> int:
    return library().address(f"{name}_recorded")


def _layout(column: np.ndarray) -> tuple[int, int, int, int]:
    """Address, type and distances in bytes of rows and columns."""
    strides = (*column.strides, 0)
    return column.__array_interface__["data"][0], int(from_numpy(column.dtype)), strides[0], strides[1]
