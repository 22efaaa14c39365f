# SPDX-License-Identifier: Apache-2.0
"""Runs column programs with NumPy: what their instructions mean, apart from the native code that runs them."""

import numpy as np

from penstock.core.kernels import library
from penstock.core.program import COMPUTED, RESULT, SOURCE_BIT, Call, Compute, Convert, Expect, Gather, Scatter


def interpret(program, memory):
    """The memory of all values afterwards, by number, or None where a check fails. `memory` is what inputs and
    constants hold."""
    memory = [np.zeros_like(m) if v.kind in (COMPUTED, RESULT) else m.copy() for v, m in zip(program.values, memory)]
    for instruction in program.instructions:
        if not _STEPS[type(instruction)](instruction, memory):
            return None
    return memory


def _seen(view, memory):
    return np.ndarray(view.shape, view.dtype, memory[view.value.number].data, view.offset, view.strides)


def _compute(i, memory):
    out, inputs = _seen(i.out, memory), [_seen(x, memory) for x in i.inputs]
    function = getattr(np, i.operation)
    summed = tuple(d for d, (extent, step) in enumerate(zip(out.shape, out.strides)) if extent > 1 and step == 0)
    with np.errstate(all="ignore"):
        if summed:
            result = function(out, function.reduce(inputs[1], axis=summed, keepdims=True))
        else:
            result = function(*inputs)
        out[...] = result.astype(out.dtype)
    return True


def _convert(i, memory):
    out = _seen(i.out, memory)
    with np.errstate(all="ignore"):
        out[...] = _seen(i.x, memory).astype(out.dtype)
    return True


def _gather(i, memory):
    size, sources = i.out.dtype.itemsize, [memory[s.number].tobytes() for s in i.sources]
    places = [(int(p) >> SOURCE_BIT, int(p) & (1 << SOURCE_BIT) - 1) for p in i.places.ravel()]
    gathered = b"".join(sources[s][at : at + size] for s, at in places)
    _seen(i.out, memory)[...] = np.frombuffer(gathered, i.out.dtype).reshape(i.out.shape)
    return True


def _scatter(i, memory):
    size, x = i.x.dtype.itemsize, _seen(i.x, memory).tobytes()
    to = memory[i.to.number].reshape(-1).view("u1")
    for k, place in enumerate(i.places.ravel().tolist()):
        to[place : place + size] = np.frombuffer(x[k * size : (k + 1) * size], "u1")
    return True


def _call(i, memory):
    numbers = [
        x if isinstance(x, int) else memory[x.value.number].__array_interface__["data"][0] + x.offset
        for x in i.arguments
    ]
    return int(getattr(library(), i.function)(*numbers) or 0) == i.result


def _expect(i, memory):
    return _seen(i.x, memory).tobytes() == i.expected.tobytes()


_STEPS = {
    Compute: _compute,
    Convert: _convert,
    Gather: _gather,
    Scatter: _scatter,
    Call: _call,
    Expect: _expect,
}
