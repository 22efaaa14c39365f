# SPDX-License-Identifier: Apache-2.0
"""Column programs: how the plan of a batch follows from its extents, its arguments that are data, and where its samples
stand in the epoch. core/tracing.py makes them from the rules of operators; native code runs them."""

from __future__ import annotations

import ctypes
from array import array as packed
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .dtypes import from_numpy
from .kernels import library
from .rows import MAX_DIMS, address

# In the order of enum Operation of kernels/core/columns.cpp.
OPERATIONS = (
    "add subtract multiply divide floor_divide remainder minimum maximum copysign bitwise_and bitwise_or bitwise_xor "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "negative absolute floor ceil trunc rint sqrt isfinite isnan isinf logical_not invert where clip"
).split()
NUMBER_OF = {name: i for i, name in enumerate(OPERATIONS)}
_OPERANDS, _OF_NUMBER = 4, [0] * MAX_DIMS
SOURCE_BIT = 48  # in the places of a Gather: the source above, the distance in bytes below

INPUT, CONSTANT, COMPUTED, RESULT = "input", "constant", "computed", "result"
_LETTERS = {INPUT: "i", CONSTANT: "k", COMPUTED: "c", RESULT: "r"}


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """An array of a program: given for each batch (input), the same for all (constant), in between (computed), or
    what others read of it (result)."""

    number: int
    kind: str
    dtype: np.dtype
    shape: tuple[int, ...]
    name: str = ""

    def __str__(self) -> str:
        return f"{_LETTERS[self.kind]}{self.number}"


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """A part of a value, as in NumPy: the first element, extents, and distances of neighbours in bytes."""

    value: Value
    offset: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype="i8"))

    def strides_in(self, shape: tuple[int, ...]) -> list[int]:
        """The distances when it is repeated to another shape, by NumPy's rules."""
        missing = len(shape) - len(self.shape)
        own = zip(self.shape, self.strides, shape[missing:])
        return [0] * missing + [0 if extent == 1 and wanted != 1 else step for extent, step, wanted in own]

    def __str__(self) -> str:
        whole = self.offset == 0 and self.shape == self.value.shape and self.dtype == self.value.dtype
        if whole:
            return str(self.value)
        for field, (dtype, at, *_) in (self.value.dtype.fields or {}).items():
            if self.offset == at and self.dtype == dtype.base and self.shape == (*self.value.shape, *dtype.shape):
                return f"{self.value}.{field}"
        steps = "" if not self.shape else f" by {list(self.strides)}"
        return f"{self.value}[from {self.offset}{steps} as {self.dtype.name}{list(self.shape)}]"


@dataclass(frozen=True, eq=False, repr=False)
class Pointer:
    """Where native code reads or writes in the memory of a value."""

    value: Value
    offset: int = 0

    def __add__(self, nbytes: int) -> Pointer:
        return Pointer(self.value, self.offset + nbytes)

    def __str__(self) -> str:
        return f"&{self.value}" + f"+{self.offset}" * bool(self.offset)


At = Callable[[Value], int]  # where the memory of a value begins


@dataclass(frozen=True, eq=False, repr=False)
class Bound:
    """An instruction for memory at hand: a native function, its arguments, the result that it must give, and what has
    to be kept alive."""

    function: str
    arguments: Sequence[int]
    result: int
    alive: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Compute:
    """An operation of NumPy on elements, with inputs of the type `dtype` that are repeated to the shape of `out`."""

    operation: str
    dtype: np.dtype
    out: View
    inputs: tuple[View, ...]

    def bind(self, at: At) -> Bound:
        inputs = [*self.inputs, *[self.inputs[0]] * (_OPERANDS - 1 - len(self.inputs))]
        layout = _layout(self.out, inputs)
        places = [at(x.value) + x.offset for x in (self.out, *inputs)]
        numbers = NUMBER_OF[self.operation], int(from_numpy(self.dtype)), layout.buffer_info()[0]
        return Bound("compute_columns", [*numbers, *places], 1, layout)

    def __str__(self) -> str:
        return f"{self.out} = {self.operation}({', '.join(map(str, self.inputs))})"


@dataclass(frozen=True, eq=False, repr=False)
class Convert:
    """Copies a view, as another type if theirs differ, repeated to the shape of `out`."""

    out: View
    x: View

    def bind(self, at: At) -> Bound:
        layout = _layout(self.out, [self.x])
        types = int(from_numpy(self.out.dtype)), int(from_numpy(self.x.dtype)), layout.buffer_info()[0]
        return Bound("convert_columns", [*types, *(at(v.value) + v.offset for v in (self.out, self.x))], 1, layout)

    def __str__(self) -> str:
        return f"{self.out} = {self.x}" + f" as {self.out.dtype.name}" * (self.out.dtype != self.x.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class Gather:
    """The elements of a whole value from `places` in others: see SOURCE_BIT."""

    out: View
    sources: tuple[Value, ...]
    places: np.ndarray

    def bind(self, at: At) -> Bound:
        begins = np.array([at(s) for s in self.sources], "i8")
        places = begins[self.places >> SOURCE_BIT] + (self.places & (1 << SOURCE_BIT) - 1)
        places = np.ascontiguousarray(places, "i8")
        numbers = address(places), places.size, self.out.dtype.itemsize, at(self.out.value) + self.out.offset
        return Bound("gather_elements", numbers, 0, places)

    def __str__(self) -> str:
        return f"{self.out} = elements of {', '.join(map(str, self.sources))}"


@dataclass(frozen=True, eq=False, repr=False)
class Scatter:
    """Writes the elements of a whole value to `places` (distances in bytes) of another."""

    to: Value
    places: np.ndarray
    x: View

    def bind(self, at: At) -> Bound:
        places = np.ascontiguousarray(self.places + at(self.to), "i8")
        numbers = address(places), places.size, self.x.dtype.itemsize, at(self.x.value) + self.x.offset
        return Bound("scatter_elements", numbers, 0, places)

    def __str__(self) -> str:
        return f"elements of {self.to} = {self.x}"


@dataclass(frozen=True, eq=False, repr=False)
class Call:
    """A native function, with the result that it has to give again."""

    function: str
    arguments: tuple[View | Pointer | int, ...]
    result: int

    def bind(self, at: At) -> Bound:
        numbers = [x if isinstance(x, int) else at(x.value) + x.offset for x in self.arguments]
        return Bound(self.function, numbers, self.result)

    def __str__(self) -> str:
        return f"check {self.function}({', '.join(map(str, self.arguments))}) == {self.result}"


@dataclass(frozen=True, eq=False, repr=False)
class Expect:
    """Python has decided by a column (or a whole value): another batch needs to have the same values there."""

    x: View
    expected: np.ndarray

    def bind(self, at: At) -> Bound:
        step = self.x.strides[0] if len(self.x.shape) == 1 else self.x.dtype.itemsize
        size = self.x.dtype.itemsize
        numbers = at(self.x.value) + self.x.offset, step, size, self.x.size, address(self.expected)
        return Bound("same_column", numbers, 1, self.expected)

    def __str__(self) -> str:
        known = isinstance(self.expected, np.ndarray)
        expected = np.array2string(self.expected, threshold=6, separator=", ") if known else self.expected
        return f"check {self.x} == {expected}"


Instruction = Compute | Convert | Gather | Scatter | Call | Expect


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """Instructions, one after the other; one that checks ends it if it fails."""

    values: tuple[Value, ...]
    instructions: tuple[Instruction, ...]

    def __str__(self) -> str:
        used = {v.number for i in self.instructions for v in values_of(i)}
        lines = [
            f"{v}: {v.kind} {_type(v.dtype)}{list(v.shape)}" + f"  {v.name}" * bool(v.name)
            for v in self.values
            if v.number in used and v.kind != COMPUTED
        ]
        return "\n".join([*lines, *map(str, self.instructions)])


def values_of(instruction: Instruction) -> Iterable[Value]:
    """All values that it reads or writes."""
    for part in vars(instruction).values():
        for x in part if isinstance(part, tuple) else (part,):
            if isinstance(x, Value):
                yield x
            elif isinstance(x, (View, Pointer)):
                yield x.value


class _Instruction(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("result", ctypes.c_int64)]


class Runnable:
    """A program with the memory of its values, by number. Used by one batch at a time."""

    def __init__(self, program: Program, memory: Sequence[np.ndarray]):
        self.program, self.memory = program, memory

        def at(value: Value) -> int:
            return memory[value.number].__array_interface__["data"][0]

        bound = [i.bind(at) for i in program.instructions]
        self._n = len(bound)
        self._calls = (_Instruction * self._n)()
        self._alive: list[Any] = [bound]
        for call, b in zip(self._calls, bound):
            arguments = (ctypes.c_int64 * max(1, len(b.arguments)))(*b.arguments)
            self._alive.append(arguments)
            call.function = _address_of(b.function)
            call.arguments, call.result = ctypes.addressof(arguments), b.result
        self._at = ctypes.addressof(self._calls)

    def run(self) -> bool:
        """Whether all that is checked holds, so that the results are those of the rules."""
        return self.ran() == self._n

    def ran(self) -> int:
        """How many instructions were run until a check failed."""
        return library().run_program(self._at, self._n)


@cache
def _address_of(name: str) -> int:
    return library().address(f"{name}_instruction")


def _type(dtype: np.dtype) -> str:
    return dtype.name if dtype.names is None else "rows"


def _layout(out: View, inputs: Sequence[View]) -> Any:
    """struct Layout of kernels/core/columns.cpp"""
    shape = out.shape or (1,)
    # Which axis is the innermost makes no difference but in time.
    order = sorted(range(len(shape)), key=shape.__getitem__)
    order = [d for d in order if shape[d] > 1] or order[-1:]
    beyond = [0] * (MAX_DIMS - len(order))
    layout = packed("q", [len(order), *[shape[d] for d in order], *beyond])
    for x in (out, *inputs):
        strides = x.strides_in(shape)
        layout.extend([strides[d] for d in order] + beyond)
    layout.extend(_OF_NUMBER * (_OPERANDS - 1 - len(inputs)))
    return layout
