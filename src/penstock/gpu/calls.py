# SPDX-License-Identifier: Apache-2.0
"""Kernel calls that launches are planned for, and the meaning of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.batch import Spec
from . import forms
from .source import Kind, places

Tensor = Any  # whatever the caller calls it by
Specs = Mapping[Tensor, Spec] | Sequence[Spec]  # by tensor


class Call(NamedTuple):
    """One operator of a segment: its kernel, its tensors, and its argument rows (n,) on the host, which may determine
    variants and grids. LOCAL kernels have one output and read only their first input."""

    kernel: str
    outs: list[Tensor]
    ins: list[Tensor]
    args: np.ndarray | None = None

    @property
    def form(self) -> str:
        """How the kernel computes, one of `forms.FORMS`."""
        said = forms.described(self.kernel)
        return said.form_with_one_input if len(self.ins) == 1 else said.form


def constants(call: Call) -> tuple[int, ...]:
    """The argument values that are compiled into a LOCAL."""
    return tuple(int(call.args[name][0]) for name in forms.constants_of(call.kernel)) if call.args is not None else ()


def reflects(call: Call) -> bool:
    """Whether neighbours in the output may not be neighbours in the input, as the border is not a constant."""
    border = forms.described(call.kernel).border
    return call.args is not None and bool(border) and bool(call.args[border].any())


def turns(call: Call, specs: Specs) -> bool:
    """Whether the order of the spatial axes changes."""
    axis, n = specs[call.outs[0]].axis("C"), specs[call.outs[0]].ndim
    axes = forms.described(call.kernel).axes
    if not axes or call.args is None or not len(call.args):
        return False
    order = [int(a) for d, a in enumerate(call.args[axes][0, :n]) if d != axis]
    return order != sorted(order)


def named(head: Call, specs: Specs, kind: Kind) -> list[tuple[str, Kind]]:
    """Names and Kinds of the tensors of a block or own kernel."""
    names = [("To0", kind)]
    names += [(f"To{i}", places([specs[t]], False, False)[0]) for i, t in enumerate(head.outs) if i]
    for i, t in enumerate(head.ins):
        in_ = places([specs[t]], False, not kind.unit)[0]
        names.append((f"From{i}", in_))
    return names


def resamples_channels(call: Call, specs: Specs) -> bool:
    """Whether a head computes along the channel axis."""
    said = forms.described(call.kernel)
    if not said.first_axis or call.args is None or not len(call.args):
        return False
    first = int(call.args[said.first_axis][0])
    return first <= specs[call.ins[0]].axis("C") < first + int(call.args[said.n_axes][0])


def shifts_channels(call: Call, specs: Specs) -> bool:
    """Whether a LOCAL moves or crops channels, so that a pixel can't be a unit."""
    x, out = specs[call.ins[0]], specs[call.outs[0]]
    axis, to = x.axis("C"), out.axis("C")
    if call.args is None or not len(call.args) or axis < 0 or to < 0:
        return False
    said = forms.described(call.kernel)
    if said.axes and call.args[said.axes][0, to] != axis:
        return True
    if not said.begin:
        return False
    start = call.args[said.begin][:, axis]
    if said.begin_minus:
        start = start - call.args[said.begin_minus][:, axis]
    return bool(start.any() or (x.stored[:, axis] != out.stored[:, to]).any())
