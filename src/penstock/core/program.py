# SPDX-License-Identifier: Apache-2.0
"""Column programs: compute the plan of a batch from its shapes, its arguments that are data, and its samples'
positions in the epoch. core/tracing.py makes them from operators' rules; native code runs them, in the memory that
the rules used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .kernels import library
from .rows import MAX_DIMS, address

_OPERANDS, _BITS = 4, (1 << 64) - 1

INPUT, CONSTANT, COMPUTED = "input", "constant", "computed"
_LETTERS = {INPUT: "i", CONSTANT: "k", COMPUTED: "c"}


@dataclass(eq=False, repr=False, slots=True)
class Value:
    """An array of a program: set for each batch (input), constant, or computed. Values with a name are read by
    others."""

    number: int
    kind: str
    memory: np.ndarray
    name: str = ""

    def __str__(self) -> str:
        return f"{_LETTERS[self.kind]}{self.number}"


@dataclass(eq=False, repr=False, slots=True)
class View:
    """A view of a value's memory; for native code, its address."""

    value: Value
    array: np.ndarray

    @property
    def address(self) -> int:
        return address(self.array)

    def __add__(self, nbytes: int) -> View:
        return View(self.value, self.array.reshape(-1).view("u1")[nbytes:])

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


Argument = View | np.ndarray | int


@dataclass(eq=False, repr=False, slots=True)
class Instruction:
    """A native function, its arguments (arrays belong to the instruction, such as expected values), and the expected
    result: any other result ends the program. Printed as `text` formatted with `parts`. `written` are the values that
    it may write to; if `is_input`, without those that hold nothing but shapes, and its result is whether these have
    changed."""

    function: str
    arguments: tuple[Argument, ...]
    result: int
    text: str
    parts: tuple[Any, ...]
    written: tuple[Value, ...]
    is_input: bool = False

    def values(self) -> Iterable[Value]:
        """The values that it reads or writes."""
        for x in (*self.arguments, *self.parts):
            if isinstance(x, Value):
                yield x
            elif isinstance(x, View):
                yield x.value

    def __str__(self) -> str:
        return self.text.format(*map(_short, self.parts))


def _short(part: Any) -> str:
    return np.array2string(part, threshold=6, separator=", ") if isinstance(part, np.ndarray) else str(part)


def number_of(x: Argument) -> int:
    """An argument for native code."""
    return x if isinstance(x, int) else address(x) if isinstance(x, np.ndarray) else x.address


_PACKED = np.dtype("u8, u8, i8, i8")  # struct Instruction of kernels/core/program.h
_ALWAYS, _IF_SHAPES_CHANGED, _INPUT = range(3)


class Program:
    """A sequence of instructions in the memory of their values; ends if a check fails. Used by one batch at a time.
    What depends only on shapes is computed again only if they have changed since the last run."""

    def __init__(self, values: Sequence[Value], instructions: Sequence[Instruction]):
        self.values, self.instructions = tuple(values), tuple(instructions)
        self._n = len(self.instructions)
        self._arguments = [np.array([number_of(x) & _BITS for x in i.arguments], "u8") for i in self.instructions]
        when, self.varying = _when(self.instructions)
        packed = [
            (_address_of(i.function), address(x), i.result, w)
            for i, x, w in zip(self.instructions, self._arguments, when)
        ]
        self._packed = np.array(packed, _PACKED)
        self._at = address(self._packed)
        self._is_incomplete = True  # whether the last run, if any, ended before the last instruction
        self.same_shapes = False  # whether shapes were those of the run before

    def run(self) -> Instruction | None:
        """Returns the instruction whose check failed; None if all passed: the results equal those of the rules."""
        ran = library().run_program(self._at, self._n, self._is_incomplete)
        self.same_shapes, self._is_incomplete = ran == self._n, ran < self._n
        return self.instructions[ran] if self._is_incomplete else None

    def __str__(self) -> str:
        used = {v.number for i in self.instructions for v in i.values()}
        lines = [
            f"{v}: {v.kind} {_type(v.memory.dtype)}{list(v.memory.shape)}" + f"  {v.name}" * bool(v.name)
            for v in self.values
            if v.number in used and (v.name or v.kind != COMPUTED)
        ]
        return "\n".join([*lines, *map(str, self.instructions)])


def _when(instructions: Sequence[Instruction]) -> tuple[list[int], set[Value]]:
    """When each instruction runs: always, if it has to do with a value that may differ in batches of the same shapes;
    and these values."""
    of = [set(i.values()) for i in instructions]
    varying, before = {v for values in of for v in values if v.kind == INPUT}, 0
    while len(varying) > before:
        before = len(varying)
        for i, values in zip(instructions, of):
            if not varying.isdisjoint(values):
                varying.update(i.written)
    always = [not varying.isdisjoint(values) for values in of]
    when = [_INPUT if i.is_input else _ALWAYS if a else _IF_SHAPES_CHANGED for i, a in zip(instructions, always)]
    return when, varying


@cache
def _address_of(name: str) -> int:
    return library().address(f"{name}_instruction")


@cache
def operation_number(name: str) -> int:
    """The number of an elementwise operation, by NumPy's function name; negative if native code does not have it."""
    return library().operation_number(name.encode())


def _type(dtype: np.dtype) -> str:
    return dtype.name if dtype.names is None else "rows"


def layout_of(out: np.ndarray, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """struct Layout of kernels/core/columns.cpp: how to iterate over an output and its inputs, broadcast to its
    shape."""
    shape = out.shape or (1,)
    axes: list[tuple[int, ...]] = []  # extent, and strides
    for extent, *strides in zip(shape, *(np.broadcast_to(x, shape).strides for x in (out, *inputs))):
        if axes and (axes[-1][0] == 1 or axes[-1][1:] == tuple(extent * s for s in strides)):
            extent *= axes.pop()[0]
        if extent > 1 or not axes:
            axes.append((extent, *strides))
    axes.sort()  # which axis is the innermost one affects only speed
    layout = np.zeros(1 + MAX_DIMS * (1 + _OPERANDS), "i8")
    layout[0] = len(axes)
    layout[1:].reshape(-1, MAX_DIMS)[: len(axes[0]), : len(axes)] = np.transpose(axes)
    return layout
