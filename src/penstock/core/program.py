# SPDX-License-Identifier: Apache-2.0
"""Column programs: how the plan of a batch follows from its extents, its arguments that are data, and where its samples
stand in the epoch. core/tracing.py makes them from the rules of operators; native code runs them, in the memory that
the rules computed in."""

from __future__ import annotations

import ctypes
from array import array as packed
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

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

INPUT, CONSTANT, COMPUTED, RESULT = "input", "constant", "computed", "result"
_LETTERS = {INPUT: "i", CONSTANT: "k", COMPUTED: "c", RESULT: "r"}


@dataclass(eq=False, repr=False, slots=True)
class Value:
    """An array of a program: given for each batch (input), the same for all (constant), in between (computed), or
    what others read of it (result)."""

    number: int
    kind: str
    memory: np.ndarray
    name: str = ""

    def __str__(self) -> str:
        return f"{_LETTERS[self.kind]}{self.number}"


@dataclass(eq=False, repr=False, slots=True)
class View:
    """A part of a value: an array in its memory."""

    value: Value
    array: np.ndarray

    @property
    def address(self) -> int:
        return address(self.array)

    def __str__(self) -> str:
        array, memory = self.array, self.value.memory
        offset = address(array) - address(memory) if array.size else 0
        if offset == 0 and array.shape == memory.shape and array.dtype == memory.dtype:
            return str(self.value)
        for field, (dtype, at, *_) in (memory.dtype.fields or {}).items():
            if offset == at and array.dtype == dtype.base and array.shape == (*memory.shape, *dtype.shape):
                return f"{self.value}.{field}"
        steps = f" by {list(array.strides)}" * bool(array.shape)
        return f"{self.value}[from {offset}{steps} as {array.dtype.name}{list(array.shape)}]"


@dataclass(eq=False, repr=False, slots=True)
class Pointer:
    """Where native code reads or writes in the memory of a value."""

    value: Value
    offset: int = 0

    @property
    def address(self) -> int:
        return address(self.value.memory) + self.offset

    def __add__(self, nbytes: int) -> Pointer:
        return Pointer(self.value, self.offset + nbytes)

    def __str__(self) -> str:
        return f"&{self.value}" + f"+{self.offset}" * bool(self.offset)


class NativeCall(NamedTuple):
    """What native code does for an instruction: a function, its arguments, the result that it must give, and what has
    to be kept alive."""

    function: str
    arguments: Sequence[int]
    result: int
    alive: Any = None


@dataclass(eq=False, repr=False, slots=True)
class Compute:
    """An operation of NumPy on elements, with inputs of the type `dtype` that are repeated to the shape of `out`."""

    operation: str
    dtype: np.dtype
    out: View
    inputs: tuple[View, ...]

    def call(self) -> NativeCall:
        inputs = [*self.inputs, *[self.inputs[0]] * (_OPERANDS - 1 - len(self.inputs))]
        layout = _layout(self.out, inputs)
        numbers = NUMBER_OF[self.operation], int(from_numpy(self.dtype)), layout.buffer_info()[0]
        return NativeCall("compute_columns", [*numbers, *(x.address for x in (self.out, *inputs))], 1, layout)

    def __str__(self) -> str:
        return f"{self.out} = {self.operation}({', '.join(map(str, self.inputs))})"


@dataclass(eq=False, repr=False, slots=True)
class Convert:
    """Copies a view, as another type if theirs differ, repeated to the shape of `out`."""

    out: View
    x: View

    def call(self) -> NativeCall:
        layout, (to, x) = _layout(self.out, [self.x]), (self.out, self.x)
        types = int(from_numpy(to.array.dtype)), int(from_numpy(x.array.dtype))
        return NativeCall("convert_columns", [*types, layout.buffer_info()[0], to.address, x.address], 1, layout)

    def __str__(self) -> str:
        dtype = self.out.array.dtype
        return f"{self.out} = {self.x}" + f" as {dtype.name}" * (dtype != self.x.array.dtype)


@dataclass(eq=False, repr=False, slots=True)
class Gather:
    """The elements of a whole value, each from its address in one of the sources."""

    out: View
    sources: tuple[Value, ...]
    addresses: np.ndarray

    def call(self) -> NativeCall:
        size = self.out.array.dtype.itemsize
        return NativeCall("gather_elements", [address(self.addresses), self.addresses.size, size, self.out.address], 0)

    def __str__(self) -> str:
        return f"{self.out} = elements of {', '.join(map(str, self.sources))}"


@dataclass(eq=False, repr=False, slots=True)
class Scatter:
    """Writes the elements of a whole value to addresses in another."""

    to: Value
    addresses: np.ndarray
    x: View

    def call(self) -> NativeCall:
        size = self.x.array.dtype.itemsize
        return NativeCall("scatter_elements", [address(self.addresses), self.addresses.size, size, self.x.address], 0)

    def __str__(self) -> str:
        return f"elements of {self.to} = {self.x}"


@dataclass(eq=False, repr=False, slots=True)
class Call:
    """A native function, with the result that it has to give again."""

    function: str
    arguments: tuple[View | Pointer | int, ...]
    result: int

    def numbers(self) -> list[int]:
        return [x if isinstance(x, int) else x.address for x in self.arguments]

    def call(self) -> NativeCall:
        return NativeCall(self.function, self.numbers(), self.result)

    def __str__(self) -> str:
        return f"check {self.function}({', '.join(map(str, self.arguments))}) == {self.result}"


@dataclass(eq=False, repr=False, slots=True)
class Expect:
    """Python has decided by a column (or a whole value): another batch needs to have the same values there."""

    x: View
    expected: np.ndarray

    def call(self) -> NativeCall:
        array = self.x.array
        step = array.strides[0] if array.ndim == 1 else array.itemsize
        return NativeCall("same_column", [self.x.address, step, array.itemsize, array.size, address(self.expected)], 1)

    def __str__(self) -> str:
        return f"check {self.x} == {np.array2string(self.expected, threshold=6, separator=', ')}"


Instruction = Compute | Convert | Gather | Scatter | Call | Expect


class _Instruction(ctypes.Structure):
    _fields_ = [("function", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("result", ctypes.c_int64)]


class Program:
    """Instructions, one after the other, in the memory of their values; one that checks ends it if it fails. Used by
    one batch at a time."""

    def __init__(self, values: Sequence[Value], instructions: Sequence[Instruction]):
        self.values, self.instructions = tuple(values), tuple(instructions)
        self._n = len(self.instructions)
        self._calls = (_Instruction * self._n)()
        self._alive: list[Any] = []
        for packed_call, instruction in zip(self._calls, self.instructions):
            call = instruction.call()
            arguments = (ctypes.c_int64 * max(1, len(call.arguments)))(*call.arguments)
            self._alive.append((call, arguments))
            packed_call.function = _address_of(call.function)
            packed_call.arguments, packed_call.result = ctypes.addressof(arguments), call.result
        self._at = ctypes.addressof(self._calls)

    def run(self) -> bool:
        """Whether all that is checked holds, so that the results are those of the rules."""
        return self.ran() == self._n

    def ran(self) -> int:
        """How many instructions were run until a check failed."""
        return library().run_program(self._at, self._n)

    def __str__(self) -> str:
        used = {v.number for i in self.instructions for v in values_of(i)}
        lines = [
            f"{v}: {v.kind} {_type(v.memory.dtype)}{list(v.memory.shape)}" + f"  {v.name}" * bool(v.name)
            for v in self.values
            if v.number in used and v.kind != COMPUTED
        ]
        return "\n".join([*lines, *map(str, self.instructions)])


def values_of(instruction: Instruction) -> Iterable[Value]:
    """All values that it reads or writes."""
    for name in instruction.__slots__:
        part = getattr(instruction, name)
        for x in part if isinstance(part, tuple) else (part,):
            if isinstance(x, Value):
                yield x
            elif isinstance(x, (View, Pointer)):
                yield x.value


@cache
def _address_of(name: str) -> int:
    return library().address(f"{name}_instruction")


def _type(dtype: np.dtype) -> str:
    return dtype.name if dtype.names is None else "rows"


def _layout(out: View, inputs: Sequence[View]) -> Any:
    """struct Layout of kernels/core/columns.cpp"""
    shape = out.array.shape or (1,)
    # Which axis is the innermost makes no difference but in time.
    order = sorted(range(len(shape)), key=shape.__getitem__)
    order = [d for d in order if shape[d] > 1] or order[-1:]
    beyond = [0] * (MAX_DIMS - len(order))
    layout = packed("q", [len(order), *[shape[d] for d in order], *beyond])
    for x in (out, *inputs):
        strides = _strides_in(x.array, shape)
        layout.extend([strides[d] for d in order] + beyond)
    layout.extend(_OF_NUMBER * (_OPERANDS - 1 - len(inputs)))
    return layout


def _strides_in(array: np.ndarray, shape: tuple[int, ...]) -> list[int]:
    """The strides when it is repeated to another shape, by NumPy's rules."""
    missing = len(shape) - array.ndim
    own = zip(array.shape, array.strides, shape[missing:])
    return [0] * missing + [0 if extent == 1 and wanted != 1 else step for extent, step, wanted in own]
