# SPDX-License-Identifier: Apache-2.0
"""Arrays of a record, with which rules compute as with any others: what NumPy is asked for is put on record
(recorded.py), so that another batch's plan follows from its data by native calls.

What Python learns of a column, by `if`, `int()`, or an index, is expected of a later batch. What is not in the
vocabulary, and results that native code does not give bit for bit, are a fault of the record: the rules then run for
every batch."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .recorded import (
    COMPOSED,
    FILLED,
    MOVING,
    addresses,
    at_of,
    compute,
    constant,
    convert,
    gather,
    is_fixed,
    move,
    operand,
    plain,
    reduce,
    settled,
    verified,
    written,
)

if TYPE_CHECKING:
    from .recording import Recorder

__all__ = ["Column", "constant", "plain", "written"]


class Column(np.ndarray):
    """Can't be written to but by item assignment."""

    _record: weakref.ref | None  # NumPy's arrays keep what they are views of, which the record then may not keep

    def __array_finalize__(self, of: Any) -> None:
        self._record = getattr(of, "_record", None)

    @property
    def record(self) -> Recorder | None:
        """Whose array it is, as long as that goes on."""
        record = None if self._record is None else self._record()
        return record if record is not None and record.is_open else None

    @record.setter
    def record(self, record: Recorder) -> None:
        self._record = weakref.ref(record)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        record = _record_of((inputs, kwargs.get("out", ())))
        given = {k: plain(v) for k, v in kwargs.items()}
        if record is None:
            return getattr(ufunc, method)(*map(plain, inputs), **given)
        out = given.pop("out", (None,))[0]
        if out is None and is_fixed(record, inputs):
            return record.constant(getattr(ufunc, method)(*map(plain, inputs), **given))
        if method == "__call__" and not given:
            made = compute(record, ufunc.__name__, ufunc(*map(plain, inputs)), inputs)
        elif method == "reduce" and set(given) <= {"axis", "dtype", "keepdims", "initial", "where"}:
            made = reduce(record, ufunc, inputs[0], given)
        else:
            made = record.unknown(f"np.{ufunc.__name__}", getattr(ufunc, method)(*map(plain, inputs), **given))
        if out is None:
            return made
        kwargs["out"][0][...] = made
        return kwargs["out"][0]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        record = _record_of((args, tuple(kwargs.values())))
        if record is None:
            return function(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        if function in COMPOSED:
            return super().__array_function__(function, types, args, kwargs)
        if is_fixed(record, (args, tuple(kwargs.values()))):
            return record.constant(function(*plain(args), **{k: plain(v) for k, v in kwargs.items()}))
        if function is np.array_equal and len(args) == 2 and not kwargs:
            return args[0].shape == args[1].shape and bool((args[0] == args[1]).all())
        if function in MOVING:
            return move(record, function, args, kwargs)
        result = function(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
        if function is np.where and len(args) == 3 and not kwargs:
            return compute(record, "where", result, args)
        if function in FILLED or (function is np.full_like and not isinstance(args[1], np.ndarray)):
            return record.filled_with(result.shape, result.dtype, FILLED[function] if len(args) == 1 else args[1])
        return record.unknown(f"np.{function.__name__}", result)

    # What gives other columns ----------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        record = self.record
        if record is None:
            return plain(self)[plain(index)]
        index = settled(index, record)
        result = plain(self)[index]
        if not isinstance(result, np.ndarray):
            result = plain(self)[(*index, ...) if isinstance(index, tuple) else (index, ...)]
        if is_fixed(record, self):
            return record.constant(result)
        if record.is_made(result):
            return record.column(result)
        return gather(record, result, addresses(self)[index])

    def __setitem__(self, index: Any, values: Any) -> None:
        record = self.record
        if record is None:
            plain(self)[plain(index)] = plain(values)
            return
        index = settled(index, record)
        values = operand(record, values, values.dtype if isinstance(values, np.ndarray) else np.asarray(values).dtype)
        if not record.is_made(self):
            record.unknown("writing to a constant", None)
            written(self)[index] = plain(values)
            return
        view = plain(self)[index]
        if isinstance(view, np.ndarray) and record.is_made(view):
            convert(record, values, view)
            return
        to = addresses(self)[index]
        whole = record.filled_with(to.shape, self.dtype, None)
        convert(record, values, whole)
        record.alive(to := np.ascontiguousarray(to))
        record.native("scatter_elements", to.ctypes.data, to.size, self.itemsize, at_of(whole))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        record, dtype = self.record, np.dtype(dtype)
        if record is None:
            return plain(self).astype(dtype, *args, **kwargs)
        if dtype == self.dtype and kwargs.get("copy") is False:
            return self
        if is_fixed(record, self):
            return record.constant(plain(self).astype(dtype))
        out = record.filled_with(self.shape, dtype, None)
        convert(record, self, out)
        return verified(record, f"astype({dtype.name})", out, plain(self).astype(dtype))

    def copy(self, *args: Any) -> Any:
        record = self.record
        if record is None:
            return plain(self).copy()
        out = record.filled_with(self.shape, self.dtype, None)  # to be written to, even if this is a constant
        convert(record, self, out)
        return verified(record, "copy", out, plain(self))

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **kwargs)

    def ravel(self, *args: Any) -> Any:
        return np.reshape(self, -1)

    def flatten(self, *args: Any) -> Any:
        return np.reshape(self, -1)

    def repeat(self, *args: Any, **kwargs: Any) -> Any:
        return np.repeat(self, *args, **kwargs)

    # What Python learns -----------------------------------------------------------------------------------------------

    def known(self) -> np.ndarray:
        """The values, which are expected of later batches."""
        record = self.record
        if record is not None and not is_fixed(record, self):
            record.expect_all(self)
        return plain(self)

    def __bool__(self) -> bool:
        if self.record is not None and self.dtype.kind != "b" and self.size == 1:
            return bool(self != 0)
        return bool(self.known())

    def __int__(self) -> int:
        return int(self.known())

    def __index__(self) -> int:
        return self.known().__index__()

    def __float__(self) -> float:
        return float(self.known())

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __format__(self, spec: str) -> str:
        return format(self.known().item(), spec) if not self.ndim else format(self.known(), spec)

    def __str__(self) -> str:
        return str(self.known())

    def __repr__(self) -> str:
        return repr(plain(self))

    def item(self, *args: Any) -> Any:
        return self.known().item(*args)

    def tolist(self) -> Any:
        return self.known().tolist()

    def tobytes(self, *args: Any) -> bytes:
        return self.known().tobytes(*args)

    def nonzero(self) -> Any:
        return self.known().nonzero()


def _record_of(x: Any) -> Recorder | None:
    """That of a column among these, if it goes on."""
    if type(x) is Column:
        return x.record
    if type(x) in (list, tuple):
        return next((r for r in map(_record_of, x) if r is not None), None)
    return None
