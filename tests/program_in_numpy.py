# SPDX-License-Identifier: Apache-2.0
"""Runs column programs with NumPy: what their instructions mean, apart from the native code that runs them."""

import ctypes

import numpy as np

from penstock.core.kernels import library
from penstock.core.program import COMPUTED, RESULT, Call, Compute, Convert, Expect, Gather, Scatter


def interpret(program):
    """Copies of the memory of all values afterwards, by number, or None where a check fails."""
    for value in program.values:
        if value.kind in (COMPUTED, RESULT):
            value.memory[...] = np.zeros((), value.memory.dtype)
    for instruction in program.instructions:
        if not _STEPS[type(instruction)](instruction):
            return None
    return [v.memory.copy() for v in program.values]


def _compute(i):
    out, inputs = i.out.array, [x.array for x in i.inputs]
    function = getattr(np, i.operation)
    with np.errstate(all="ignore"):
        if out.flags.writeable:
            result = function(*inputs)
        else:  # sums, seen repeated along the axes that are reduced
            sums = i.out.value.memory
            axes = tuple(d for d, (extent, kept) in enumerate(zip(out.shape, sums.shape)) if extent != kept)
            out, result = sums, function(sums, function.reduce(inputs[1], axis=axes, keepdims=True))
        out[...] = result.astype(out.dtype)
    return True


def _convert(i):
    with np.errstate(all="ignore"):
        i.out.array[...] = i.x.array.astype(i.out.array.dtype)
    return True


def _gather(i):
    out = i.out.array
    gathered = b"".join(ctypes.string_at(at, out.itemsize) for at in i.addresses.ravel().tolist())
    out[...] = np.frombuffer(gathered, out.dtype).reshape(out.shape)
    return True


def _scatter(i):
    for at, element in zip(i.addresses.ravel().tolist(), i.x.array.ravel()):
        ctypes.memmove(at, element.tobytes(), element.itemsize)
    return True


def _call(i):
    return int(getattr(library(), i.function)(*i.numbers()) or 0) == i.result


def _expect(i):
    return i.x.array.tobytes() == i.expected.tobytes()


_STEPS = {
    Compute: _compute,
    Convert: _convert,
    Gather: _gather,
    Scatter: _scatter,
    Call: _call,
    Expect: _expect,
}
