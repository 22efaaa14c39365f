# SPDX-License-Identifier: Apache-2.0
"""Generates the CUDA C++ of a launch: a head and a chain of LOCALs for certain types (see kernels/core/gpu.h)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.batch import Spec
from ..core.traced import Traced, known_values
from . import forms

_C_TYPES = {
    "u1": "uint8_t",
    "u2": "uint16_t",
    "u4": "uint32_t",
    "u8": "uint64_t",
    "i1": "int8_t",
    "i2": "int16_t",
    "i4": "int32_t",
    "i8": "int64_t",
    "f2": "half",
    "f4": "float",
    "f8": "double",
    "b1": "bool",
}
_MOST_CHANNELS = 4  # in one unit


class OddBatch(ValueError):
    """The launches depend on unusual properties of the batch; another batch should be traced."""


def c_type(dtype: np.dtype) -> str:
    """The C++ type of array elements."""
    return _C_TYPES[dtype.str[1:]]


class Kind(NamedTuple):
    """The Kind of core/gpu.h: element type, number of coordinates, channels in a unit, channel axis, whether a pixel is
    a unit."""

    type: str
    n: int
    c: int
    axis: int
    unit: bool

    def __str__(self) -> str:
        return f"Kind<{self.type}, {self.n}, {self.c}, {self.axis}, {'true' if self.unit else 'false'}>"


class Step(NamedTuple):
    """A LOCAL of a chain: its kernel, the Kind of its output, and the indices of its arguments, output and input in the
    launch."""

    kernel: str
    to: Kind
    args: int
    out: int
    in_: int
    constants: tuple[int, ...] = ()


def runs(dtypes: list[np.dtype]) -> list[Kind]:
    """Kinds for a chain of `values` kernels: each step processes 16 bytes of the larger of the input and output
    types."""
    v = 16 // max(dtypes[0].itemsize, dtypes[-1].itemsize)
    return [Kind(c_type(d), 1, v, 1, True) for d in dtypes]


def _unit(s: Spec) -> tuple[int, int] | None:
    """The channel axis and number of channels if a pixel's channels can be a unit; else None."""
    axis = s.axis("C")
    if axis < 0 or s.ndim < 2:
        return None
    column = s.stored[:, axis]
    c = known_values(column)
    if len(c) and c[0] > 0 and (c == c[0]).all():
        n = int(c[0])
    elif isinstance(column, Traced):
        raise OddBatch("samples have different channels")
    else:  # ignore empty samples
        c = c[s.volumes() > 0]
        c = c if len(c) else np.ones(1, "i8")
        n = int(c[0]) if (c == c[0]).all() else 0
    return (axis, n) if 1 <= n <= _MOST_CHANNELS else None


def places(specs: list[Spec], flat: bool, shifts_channels: bool) -> list[Kind]:
    """Kinds for the tensors of a chain with other kernels: pixels are units if all tensors have few channels.

    With `flat`, positions don't matter, so that one coordinate enumerates the pixels."""
    units = [_unit(s) for s in specs]
    known = [u for u in units if u is not None]
    if len(known) < len(units) or shifts_channels:
        return [Kind(c_type(s.dtype), max(s.ndim, 1), 1, s.axis("C"), False) for s in specs]
    if flat and all(u[0] == s.ndim - 1 for u, s in zip(known, specs)):
        return [Kind(c_type(s.dtype), 1, u[1], 1, True) for u, s in zip(known, specs)]
    return [Kind(c_type(s.dtype), s.ndim - 1, u[1], u[0], True) for u, s in zip(known, specs)]


def run_length(source: Kind, last: Kind, dtypes: list[np.dtype], planes: int = 16) -> int:
    """Number of pixels per thread: 16 bytes of the larger type, per channel if both channel counts are odd; for planes,
    limited by their common alignment `planes`."""
    p = 16 // max(d.itemsize for d in dtypes)
    p = p if source.c % 2 and last.c % 2 else max(p // max(source.c, last.c), 1)
    return min(p, planes // dtypes[-1].itemsize)


def write(
    entry: str, source: Kind, steps: list[Step], includes: list[str], body: str, more: list[str], bounds: str = ""
) -> str:
    """The source of a launch: `body` is the body of the launched function, `more` are further definitions, `bounds`
    goes before its name."""
    files = [
        "core/gpu_gather.h",
        "core/gpu_tiles.h",
        *(f"{k}.cu" for k in dict.fromkeys([*includes, *(s.kernel for s in steps)])),
    ]
    lines = [f'#include "{f}"' for f in files]
    lines.append(f"typedef Source<{source}> Chain0;")
    for i, s in enumerate(steps):
        name = forms.struct_of(s.kernel)
        if s.constants:
            values = "".join(f", {c}" for c in s.constants)
            lines.append(f"template <class To, class From> using Step{i} = {name}<To, From{values}>;")
            name = f"Step{i}"
        lines.append(f"typedef Then<Chain{i}, {name}, {s.to}, {s.args}, {s.out}, {s.in_}> Chain{i + 1};")
    lines += [f"typedef Chain{len(steps)} Chain;", *more]
    lines.append(f'extern "C" __global__ void {bounds}{entry}(Launch l) {{ {body} }}')
    return "\n".join(lines) + "\n"
