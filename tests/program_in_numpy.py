# SPDX-License-Identifier: Apache-2.0
"""Runs column programs with NumPy, as a reference for the native code."""

import ctypes

import numpy as np

from penstock.core.kernels import library
from penstock.core.program import COMPUTED, number_of, operation_number

BINARY = (
    "add subtract multiply divide floor_divide remainder minimum maximum copysign bitwise_and bitwise_or bitwise_xor "
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor"
).split()
UNARY = "negative absolute floor ceil trunc rint sqrt isfinite isnan isinf logical_not invert".split()
_ARITY = dict.fromkeys(BINARY, 2) | dict.fromkeys(UNARY, 1) | {"where": 3}


def interpret(program):
    """Copies of the memory of all values after the run, by number, or None if a check fails."""
    for value in program.values:
        if value.kind == COMPUTED:
            value.memory[...] = np.zeros((), value.memory.dtype)
    for i in program.instructions:
        step = _STEPS.get(i.function)
        if not (step(*i.arguments) if step else _call(i)):
            return None
    return [v.memory.copy() for v in program.values]


def _compute(number, dtype, layout, out, *inputs):
    name = next(n for n in _ARITY if operation_number(n) == number)
    inputs = [x.array for x in inputs[: _ARITY[name]]]
    function, to = getattr(np, name), out.array
    with np.errstate(all="ignore"):
        if np.shares_memory(to, inputs[0]) and to.flags.writeable:  # in order
            for i in range(len(to)):
                to[i] = function(*(x[i] for x in inputs))
            return True
        elif to.flags.writeable:
            result = function(*inputs)
        else:  # sums, seen repeated along the axes that are reduced
            sums = out.value.memory
            axes = tuple(d for d, (extent, kept) in enumerate(zip(to.shape, sums.shape)) if extent != kept)
            to, result = sums, function(sums, function.reduce(inputs[1], axis=axes, keepdims=True))
        to[...] = result.astype(to.dtype)
    return True


def _convert(to, of, layout, out, x):
    with np.errstate(all="ignore"):
        out.array[...] = x.array.astype(out.array.dtype)
    return True


def _move(source, to, n, size):
    for at, element in zip(to.ravel().tolist(), [ctypes.string_at(x, size) for x in source.ravel().tolist()]):
        ctypes.memmove(at, element, size)
    return True


def _expect(x, nbytes, expected):
    return x.array.tobytes() == expected.tobytes()


def _call(i):
    return int(getattr(library(), i.function)(*map(number_of, i.arguments)) or 0) == i.result


_STEPS = {
    "compute_columns": _compute,
    "convert_columns": _convert,
    "move_elements": _move,
    "same_column": _expect,
}
