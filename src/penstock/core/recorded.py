# SPDX-License-Identifier: Apache-2.0
"""What NumPy does with columns, as native calls of a record (kernels/core/columns.cpp)."""

from __future__ import annotations

import ctypes
from array import array as packed
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import from_numpy
from .rows import MAX_DIMS

if TYPE_CHECKING:
    from .recording import Recorder

# In the order of enum Operation of the native side.
_OPERATIONS = (
    "add subtract multiply divide floor_divide remainder minimum maximum copysign bitwise_and bitwise_or bitwise_xor "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "negative absolute floor ceil trunc rint sqrt isfinite isnan isinf logical_not invert where clip"
).split()
_NUMBER = {name: i for i, name in enumerate(_OPERATIONS)}
_OF_INPUTS = frozenset("equal not_equal less less_equal greater greater_equal isfinite isnan isinf".split())
_OF_BOOL = frozenset(("logical_and", "logical_or", "logical_xor", "logical_not"))
_TYPES = frozenset(np.dtype(t) for t in ("u1", "i4", "i8", "u8", "f4", "f8", "?"))
_FROM_TYPES = _TYPES | frozenset(np.dtype(t) for t in ("u2", "u4", "i1", "i2"))
_IDENTITIES = {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True, "bitwise_or": 0}
_REDUCTIONS = frozenset((*_IDENTITIES, "minimum", "maximum"))

# Functions that put elements elsewhere, and change none; and those that NumPy writes in terms of others.
MOVING = frozenset(
    getattr(np, name)
    for name in (
        "repeat delete insert pad moveaxis swapaxes transpose reshape ravel squeeze expand_dims flip roll tile "
        "take_along_axis take concatenate stack hstack vstack column_stack broadcast_to atleast_2d rot90"
    ).split()
)
COMPOSED = frozenset(getattr(np, name) for name in "any all sum prod max min clip ndim shape size".split())
_OPERANDS, _OF_NUMBER = 4, [0] * MAX_DIMS
FILLED = {np.zeros_like: 0, np.ones_like: 1, np.empty_like: 0}


def constant(array: np.ndarray) -> np.ndarray:
    """What a rule made of numbers that are the same for all batches of a kind, such as how many samples there are."""
    array = np.array(array)
    array.setflags(write=False)
    return array


def plain(x: Any) -> Any:
    """The same memory, for code that is not on record; lists and tuples of columns too."""
    if type(x) is np.ndarray or not isinstance(x, (np.ndarray, list, tuple)):
        return x
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray)
    return type(x)(map(plain, x)) if type(x) in (list, tuple) else x


def addresses(x: np.ndarray) -> np.ndarray:
    """Where each element lies."""
    at = np.full(x.shape, x.__array_interface__["data"][0], "i8")
    for d, (extent, step) in enumerate(zip(x.shape, x.strides)):
        at += (np.arange(extent) * step).reshape((-1,) + (1,) * (x.ndim - d - 1))
    return at


def is_fixed(record: Recorder, x: Any) -> bool:
    """Whether these are the same for all batches."""
    if type(x) in (list, tuple):
        for y in x:  # noqa: SIM110, as generators take longer
            if not is_fixed(record, y):
                return False
        return True
    return not isinstance(x, np.ndarray) or x.size == 0 or record.is_constant(x)


def at_of(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


def settled(index: Any, record: Recorder) -> Any:
    """An index whose parts that are columns are expected to be the same."""
    if isinstance(index, tuple):
        return tuple(settled(x, record) for x in index)
    if not isinstance(index, np.ndarray) or type(index) is np.ndarray:
        record.check(index, "an index")
        return index
    return index.known()  # type: ignore[attr-defined]


def operand(record: Recorder, x: Any, dtype: np.dtype) -> np.ndarray:
    """The values as a type, in memory that a later batch's are in, too."""
    if isinstance(x, np.ndarray) and record.is_made(x):
        if x.dtype == dtype:
            return x
        out = record.filled_with(x.shape, dtype, None)
        convert(record, x, out)
        return out
    if isinstance(x, np.ndarray):
        record.check(x, "an operand")
    constant = np.array(plain(x)).astype(dtype)
    record.alive(constant)
    return constant


def _call(record: Recorder, name: str, numbers: tuple[int, ...], out: np.ndarray, inputs: list[np.ndarray]) -> None:
    """A native function for the elements of `out`, of any shape, and of the inputs that are repeated to it."""
    if not out.size:
        return
    shape = out.shape or (1,)
    # Which axis is the innermost makes no difference but in time.
    order = sorted(range(len(shape)), key=shape.__getitem__)
    order = [d for d in order if shape[d] > 1] or order[-1:]
    beyond = [0] * (MAX_DIMS - len(order))
    # struct Layout of the native side
    layout = packed("q", [len(order), *[shape[d] for d in order], *beyond])
    for x in (out, *inputs):
        if x.ndim:
            strides = x.strides if x.shape == shape else np.broadcast_to(plain(x), shape).strides
            layout.extend([strides[d] for d in order] + beyond)
        else:  # a number is repeated
            layout.extend(_OF_NUMBER)
    layout.extend(_OF_NUMBER * (_OPERANDS - 1 - len(inputs)))
    record.alive((layout, out, inputs))
    if not record.native(name, *numbers, layout.buffer_info()[0], at_of(out), *map(at_of, inputs)):
        types = [x.dtype.name for x in (out, *inputs)]
        record.fault = record.fault or f"{name} does not know the types of {types}"


def convert(record: Recorder, x: np.ndarray, out: np.ndarray) -> None:
    """Writes x to `out`."""
    if out.dtype not in _TYPES or x.dtype not in _FROM_TYPES:
        record.fault = record.fault or f"{x.dtype.name} becomes {out.dtype.name}"
        np.copyto(written(out), plain(x), casting="unsafe")
        return
    types = int(from_numpy(out.dtype)), int(from_numpy(x.dtype))
    _call(record, "convert_columns", types, plain(out), [x])


def verified(record: Recorder, what: str, out: np.ndarray, expected: np.ndarray) -> np.ndarray:
    if plain(out).tobytes() != np.ascontiguousarray(expected, out.dtype).tobytes():
        record.fault = record.fault or f"native code gives another result for {what} than NumPy"
        np.copyto(written(out), expected)
    return out


def written(column: np.ndarray) -> np.ndarray:
    """The same memory, to be written to."""
    ends = [(extent - 1) * step for extent, step in zip(column.shape, column.strides)]
    low, high = sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + column.itemsize
    memory = (ctypes.c_char * (high - low)).from_address(at_of(column) + low)
    return np.ndarray(column.shape, column.dtype, memory, -low, column.strides)


def compute(record: Recorder, name: str, result: Any, inputs: tuple) -> Any:
    """What a function of NumPy gave, on record."""
    if name not in _NUMBER or isinstance(result, tuple):
        return record.unknown(f"np.{name}", result)
    result = np.asarray(result)
    dtype = np.result_type(*map(plain, inputs)) if name in _OF_INPUTS else result.dtype
    dtype = np.dtype("?") if name in _OF_BOOL else dtype
    if dtype not in _TYPES:
        return record.unknown(f"np.{name} of {dtype.name}", result)
    types = [np.dtype("?") if name == "where" and i == 0 else dtype for i in range(len(inputs))]
    operands = [operand(record, x, t) for x, t in zip(inputs, types)]
    out = record.filled_with(result.shape, result.dtype, None)
    _compute_into(record, name, dtype, out, operands)
    return verified(record, f"np.{name}", out, result)


def _compute_into(record: Recorder, name: str, dtype: np.dtype, out: np.ndarray, operands: list[np.ndarray]) -> None:
    operands = operands + [operands[0]] * (3 - len(operands))  # native functions take three
    _call(record, "compute_columns", (_NUMBER[name], int(from_numpy(dtype))), plain(out), operands)


def reduce(record: Recorder, ufunc: np.ufunc, x: Any, given: dict[str, Any]) -> Any:
    result = np.asarray(ufunc.reduce(plain(x), **given))
    name, dtype = ufunc.__name__, result.dtype
    unordered = dtype.kind != "f" or name in ("minimum", "maximum")  # sums of floats depend on the order
    if name not in _REDUCTIONS or dtype not in _TYPES or not unordered or given.get("where", True) is not True:
        return record.unknown(f"np.{name}.reduce of {dtype.name}", result)
    axis = given.get("axis", 0)
    axes = range(x.ndim) if axis is None else [d % x.ndim for d in (axis if isinstance(axis, tuple) else (axis,))]
    kept = tuple(1 if d in axes else extent for d, extent in enumerate(x.shape))
    out, wide = record.filled_with(kept, dtype, None), operand(record, x, np.dtype("?") if name in _OF_BOOL else dtype)
    initial = given.get("initial", np._NoValue)
    start = _IDENTITIES.get(name) if initial is np._NoValue or initial is None else initial
    if start is None:
        first = plain(wide)[tuple(slice(0, 1) if d in axes else slice(None) for d in range(x.ndim))]
        convert(record, first, out)
    else:
        convert(record, operand(record, start, dtype), out)
    if wide.size:
        # Each element is added to where its sum is: the output repeated along the axes that are reduced.
        sums = np.broadcast_to(plain(out), x.shape)
        _call_into(record, name, dtype, sums, wide)
    shaped = record.column(plain(out).reshape(result.shape))
    return verified(record, f"np.{name}.reduce", shaped, result)


def _call_into(record: Recorder, name: str, dtype: np.dtype, sums: np.ndarray, x: np.ndarray) -> None:
    dtype = np.dtype("?") if name in _OF_BOOL else dtype
    _call(record, "compute_columns", (_NUMBER[name], int(from_numpy(dtype))), sums, [sums, x, x])


def move(record: Recorder, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A function that puts elements elsewhere does so with their addresses."""
    result = function(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
    if record.is_made(result):
        return record.column(result)

    def places(x: Any) -> Any:
        return addresses(operand(record, x, result.dtype))

    first, *rest = args
    if function in (np.concatenate, np.stack, np.hstack, np.vstack, np.column_stack):
        moved = function([places(x) for x in first], *rest, **kwargs)
    elif function is np.insert:
        moved = function(places(first), settled(rest[0], record), places(rest[1]), *rest[2:], **kwargs)
    elif function is np.pad:
        if len(rest) > 1 or kwargs.keys() - {"constant_values"}:
            return record.unknown("np.pad", result)
        moved = function(places(first), *rest, constant_values=int(places(kwargs.get("constant_values", 0))))
    else:
        named = {k: settled(v, record) for k, v in kwargs.items()}
        moved = function(places(first), *(settled(x, record) for x in rest), **named)
    return gather(record, result, moved)


def gather(record: Recorder, result: np.ndarray, places: np.ndarray) -> Any:
    out = record.filled_with(result.shape, result.dtype, None)
    if result.size:
        places = np.ascontiguousarray(places, "i8")
        record.alive(places)
        record.native("gather_elements", places.ctypes.data, places.size, result.itemsize, at_of(out))
    return verified(record, "moved elements", out, result)
