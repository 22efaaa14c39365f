# SPDX-License-Identifier: Apache-2.0
"""How operator rules call native code: directly, or while being traced into a program that plans later batches of the
same kind (core/plan_cache.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import from_numpy
from .kernels import library
from .program import (
    COMPUTED,
    CONSTANT,
    INPUT,
    Argument,
    Instruction,
    Program,
    Value,
    View,
    layout_of,
    number_of,
    operation_number,
)
from .rows import allocate
from .traced import ELEMENTS, Moving, Traced, Untraceable, is_constant, known_values, plain

_INT64, _BOOL = np.dtype("i8"), np.dtype("?")
_MOST_INPUTS = 3  # per operation
_OF_BOOL = frozenset(("logical_and", "logical_or", "logical_xor", "logical_not"))
_TYPES = frozenset(np.dtype(t) for t in ("u1", "i4", "i8", "u8", "f4", "f8", "?"))
_FROM_TYPES = _TYPES | frozenset(np.dtype(t) for t in ("u2", "u4", "i1", "i2"))
_IDENTITIES = {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True, "bitwise_or": 0}
_REDUCTIONS = frozenset((*_IDENTITIES, "minimum", "maximum"))


class Native:
    """Calls native functions with columns."""

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
        """Returns a new array of zeros and its address."""
        return allocate(shape, dtype)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Returns a new array that a rule may write to."""
        return np.zeros(shape, dtype)

    def cosine_and_sine(self, radians: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines of float32 or float64, each (n,) of the same type."""
        (cosine, at_cosine), (sine, at_sine) = (self.allocate(radians.shape, radians.dtype) for _ in range(2))
        self.call("cosines_and_sines", int(from_numpy(radians.dtype)), radians, radians.size, at_cosine, at_sine)
        return cosine, sine

    def call(self, name: str, *arguments: Any) -> int:
        """Calls a function of `library()` and returns its result. Arrays are passed as read-only bytes in row-major
        order; outputs are passed by address."""
        return getattr(library(), name)(*[x.tobytes() if type(x) is np.ndarray else x for x in arguments])

    def contiguous(self, x: Any) -> Any:
        """The same column, in row-major order."""
        return np.ascontiguousarray(x)

    def taken(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """x[rows], where rows may be computed from data; both are int64."""
        return x[rows]


IMMEDIATE = Native()


class Tracer(Native):
    """Records a program while rules compute with `Traced` columns for the current batch. Raises Untraceable."""

    def __init__(self) -> None:
        self._values: list[Value] = []
        self._instructions: list[Instruction] = []

    # Values ----------------------------------------------------------------------------------------------------------

    def store(self, array: np.ndarray, kind: str, name: str = "") -> Any:
        """Adds a value in this memory and returns its column."""
        value = Value(len(self._values), kind, array, name)
        self._values.append(value)
        return Traced(self, array, value)

    def input(self, array: np.ndarray, name: str) -> tuple[np.ndarray, Any]:
        """Adds an input: returns its memory, to be filled for each batch, and its column."""
        memory = np.array(array)
        return memory, self.store(memory, INPUT, name)

    def constant(self, x: Any) -> Any:
        """Wraps an array as a column that rules can use in traced computations."""
        return Traced(self, x, None) if isinstance(x, np.ndarray) and x.ndim else x

    def allocate(self, shape: int | tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
        column = self.store(np.zeros(shape, dtype), COMPUTED)
        return column, self._view(column)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        return self.filled(shape, np.dtype(dtype), 0)

    def filled(self, shape: int | tuple[int, ...], dtype: np.dtype, value: Any) -> Any:
        """Returns a new column filled with the value, which is broadcast to the shape."""
        column, _ = self.allocate(shape, dtype)
        column[...] = value
        return column

    def _view(self, x: Traced) -> View:
        assert x.value is not None
        return View(x.value, x.array)

    def _operand(self, x: Any, dtype: np.dtype | None = None) -> View:
        """The view that an instruction reads the values from, converted to `dtype`."""
        if isinstance(x, (list, tuple)) and not is_constant(x):
            raise Untraceable("it computes with a list of columns; np.stack makes a column of them")
        if is_constant(x):
            array = np.array(plain(x), order="C")
            return self._view(self.store(array if dtype is None else array.astype(dtype), CONSTANT))
        return self._view(x if dtype is None or x.dtype == dtype else self.converted(x, dtype))

    # Instructions ----------------------------------------------------------------------------------------------------

    def compute(self, name: str, result: Any, inputs: tuple) -> Any:
        """Adds an elementwise NumPy operation, which gave `result` for the current batch."""
        if operation_number(name) < 0 or isinstance(result, tuple):
            raise Untraceable(f"np.{name} is not among the instructions")
        result = np.asarray(result)
        dtype = np.result_type(*map(plain, inputs)) if result.dtype == _BOOL else result.dtype
        dtype = _BOOL if name in _OF_BOOL else dtype
        if dtype not in _TYPES:
            raise Untraceable(f"np.{name} of {dtype.name} is not among the instructions")
        types = [_BOOL if name == "where" and i == 0 else dtype for i in range(len(inputs))]
        operands = tuple(self._operand(x, t) for x, t in zip(inputs, types))
        out = self.store(np.array(result), COMPUTED)
        self._compute(name, dtype, self._view(out), operands)
        return out

    def _compute(self, name: str, dtype: np.dtype, out: View, inputs: tuple[View, ...]) -> None:
        if not out.array.size:
            return
        operands = *inputs, *inputs[-1:] * (_MOST_INPUTS - len(inputs))  # the last ones are ignored if there are fewer
        numbers = operation_number(name), int(from_numpy(dtype)), layout_of(out.array, [x.array for x in operands])
        text = f"{{}} = {name}({', '.join(['{}'] * len(inputs))})"
        self._add(text, (out, *inputs), "compute_columns", (*numbers, out, *operands), 1, out.value)

    def _convert(self, x: View, out: View) -> None:
        to, of = out.array.dtype, x.array.dtype
        if to == of and to.str[1:] == "u4":  # bitwise copy
            to = of = np.dtype("i4")
        elif to not in _TYPES or of not in _FROM_TYPES:
            raise Untraceable(f"{of.name} does not become {to.name} by an instruction")
        if out.array.size:
            arguments = int(from_numpy(to)), int(from_numpy(of)), layout_of(out.array, [x.array]), out, x
            self._add("{} = {}" + f" as {to.name}" * (to != of), (out, x), "convert_columns", arguments, 1, out.value)

    def converted(self, x: Any, dtype: np.dtype) -> Any:
        """A copy, converted to `dtype`."""
        out = self.store(np.array(x.array, dtype, order="C"), COMPUTED)
        self._convert(self._operand(x), self._view(out))
        return out

    def contiguous(self, x: Any) -> Any:
        """The same column, in row-major order."""
        return x if not isinstance(x, Traced) or x.array.flags.c_contiguous else self.converted(x, x.dtype)

    def reduce(self, name: str, result: Any, x: Any, given: dict[str, Any]) -> Any:
        result = np.asarray(result)
        dtype = result.dtype
        unordered = dtype.kind != "f" or name in ("minimum", "maximum")  # sums of floats depend on the order
        if name not in _REDUCTIONS or dtype not in _TYPES or not unordered:
            raise Untraceable(f"np.{name}.reduce of {dtype.name} is not among the instructions")
        axis = given.get("axis", 0)
        axes = range(x.ndim) if axis is None else [d % x.ndim for d in (axis if isinstance(axis, tuple) else (axis,))]
        kept = tuple(1 if d in axes else extent for d, extent in enumerate(x.shape))
        out, at = self.allocate(kept, dtype)
        start = given.get("initial", _IDENTITIES.get(name))
        first = tuple(slice(1) if d in axes else slice(None) for d in range(x.ndim))
        out[...] = x[first] if start is None else start
        # Each element is accumulated into its sum: the output broadcast along the reduced axes.
        sums = View(at.value, np.broadcast_to(at.array, x.shape))
        dtype = _BOOL if name in _OF_BOOL else dtype
        self._compute(name, dtype, sums, (sums, self._operand(x, dtype)))
        out.array[...] = result.reshape(kept)
        return Traced(self, out.array.reshape(result.shape), out.value)

    def move(self, function: Moving, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Traces a function that moves elements, by applying it to their addresses."""
        if function is np.pad:
            if len(args) > 2 or kwargs.keys() - {"constant_values"}:
                raise Untraceable("np.pad with anything but constant_values is not among the instructions")
            kwargs = {"constant_values": 0, **kwargs}
        moved = ELEMENTS.get(function, (0,))
        given = {k: x if k in moved else known_values(x) for k, x in (*enumerate(args), *kwargs.items())}

        def applied(to: Callable[[Any], Any]) -> Any:
            of: dict[Any, Any] = {k: to(x) if k in moved else x for k, x in given.items()}
            return function(*[of.pop(i) for i in range(len(args))], **of)

        result, first, sources = applied(plain), args[0], list[Value]()
        if all(is_constant(given[k]) for k in given if k in moved):
            return self.constant(result)
        if not isinstance(result, np.ndarray):
            result = np.asarray(result)
        elif isinstance(first, Traced) and np.may_share_memory(result, first.array):
            return Traced(self, result, first.value)
        return self._gathered(result, applied(lambda x: self._places(x, result.dtype, sources)), sources)

    def _places(self, x: Any, dtype: np.dtype, sources: list[Value]) -> Any:
        """The address of each element of x, whose value is added to `sources`; also of lists and tuples."""
        if isinstance(x, (list, tuple)):
            return [self._places(y, dtype, sources) for y in x]
        view = self._operand(x, dtype)
        sources.append(view.value)
        places = np.full(view.array.shape, view.address, "i8")
        for d, (extent, step) in enumerate(zip(view.array.shape, view.array.strides)):
            places += (np.arange(extent) * step).reshape((-1,) + (1,) * (places.ndim - d - 1))
        return places

    def _gathered(self, result: np.ndarray, places: np.ndarray, sources: list[Value]) -> Any:
        out = self.store(np.array(result, order="C"), COMPUTED)
        if result.size:
            names = ", ".join(map(str, dict.fromkeys(sources)))
            parts, to = (self._view(out), *sources), self._places(out, out.dtype, [])
            self._move(f"{{}} = elements of {names}", parts, places, to, out.value)
        return out

    def _move(self, text: str, parts: tuple[Any, ...], source: np.ndarray, to: np.ndarray, out: Value) -> None:
        """Copies the elements at these addresses to others in the memory of `out`."""
        size = parts[0].array.itemsize
        addresses = np.ascontiguousarray(source, "i8"), np.ascontiguousarray(to)
        self._add(text, parts, "move_elements", (*addresses, to.size, size), 0, out)

    def write(self, x: Any, index: Any, values: Any) -> None:
        """x[index] = values"""
        if x.value is None:
            if is_constant(values):
                x.array[known_values(index)] = plain(values)
                return
            raise Untraceable("it writes a column to a constant array; x.copy() or a.native.zeros make one to write to")
        index = known_values(index)
        view = x.array[index]
        if isinstance(view, np.ndarray) and np.may_share_memory(view, x.array):
            # NumPy drops leading extents of 1 of the values.
            given = self._operand(values, x.dtype if is_constant(values) else None)
            front: tuple[Any, ...] = (0,) * (given.array.ndim - view.ndim)
            given = View(given.value, given.array[front + (...,)])
            self._convert(given, self._view(Traced(self, view, x.value)))
        else:
            sources: list[Value] = []
            places = self._places(x, x.dtype, sources)[index]
            whole = self.filled(places.shape, x.dtype, values)
            if places.size:
                parts = self._view(whole), x.value
                self._move("elements of {1} = {0}", parts, self._places(whole, x.dtype, []), places, x.value)
        x.array[index] = plain(values)

    def call(self, name: str, *arguments: Any) -> int:
        given = tuple(self._argument(x) for x in arguments)
        called = f"{name}({', '.join(['{}'] * len(given))})"
        result = int(getattr(library(), name)(*map(number_of, given)) or 0)
        written = [x.value for x in arguments if isinstance(x, View)]
        self._add(f"check {called} == {{}}", (*given, result), name, given, result, *written)
        return result

    def take_in(self, place: Any, rows: Traced, shape: Traced) -> None:
        """Copies the rows at the address in `place`, and their shapes (n, ndim)."""
        to = self._view(rows)
        arguments = self._view(place), *shape.shape, to, self._view(shape)
        library().take_in(*map(number_of, arguments))
        self._add("{3}, {4} = rows at {0}", arguments, "take_in", arguments, 0, to.value, is_input=True)

    def _add(
        self,
        text: str,
        parts: tuple[Any, ...],
        function: str,
        arguments: tuple[Argument, ...],
        result: int,
        *written: Value,
        is_input: bool = False,
    ) -> None:
        self._instructions.append(Instruction(function, arguments, result, text, parts, written, is_input))

    def _argument(self, x: Any) -> View | int:
        if isinstance(x, bytes):
            x = np.frombuffer(x, "u1")
        if isinstance(x, (Traced, np.ndarray)):
            return self._operand(self.contiguous(x))
        return x if isinstance(x, View) else int(x or 0)

    def taken(self, x: Any, rows: Any) -> Any:
        if is_constant(rows):
            return self.constant(x)[plain(rows)]
        out, at = self.allocate((*rows.shape, *x.shape[1:]), _INT64)
        width = math.prod(x.shape[1:])
        if not self.call("take_rows", self.constant(x), len(x), width, rows, rows.size, at):
            raise IndexError("a row is outside of the batch")
        return out

    def running_sums(self, x: Any) -> Any:
        """np.cumsum of a column of int64."""
        if x.dtype != _INT64 or x.ndim != 1:
            raise Untraceable("np.cumsum is for columns (n,) of int64")
        out = self.converted(x, _INT64)
        out.array[...] = np.cumsum(x.array)
        sums = self._view(out[1:])
        self._compute("add", _INT64, sums, (self._view(out[:-1]), sums))  # in order: each with the sum before it
        return out

    def expect(self, column: Any) -> None:
        """Adds a check that later batches have the same values in this column."""
        if is_constant(column):
            return
        view = self._view(self.contiguous(column))
        expected = np.array(view.array, order="C")
        self._add("check {} == {}", (view, expected), "same_column", (view, expected.nbytes, expected), 1)

    # The program ------------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The program, in the memory it was traced in. Raises Untraceable if native code does not reproduce NumPy's
        results bit for bit."""
        made = Program(self._values, self._instructions)
        expected = [v.memory.copy() for v in self._values]
        if failed := made.run():
            raise Untraceable(f"native code does not go on behind `{failed}`")
        for value, by_numpy in zip(self._values, expected):
            memory = value.memory
            # Padding between the fields of rows may have any value.
            if not (np.array_equal(memory, by_numpy) if memory.dtype.names else memory.tobytes() == by_numpy.tobytes()):
                raise Untraceable(f"native code gives another result for {value} than NumPy")
        return made
