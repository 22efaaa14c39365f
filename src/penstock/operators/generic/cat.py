# SPDX-License-Identifier: Apache-2.0
"""Concatenates inputs along an existing axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.batch import Spec
from ...core.errors import no_axis
from ...core.op import Arg, Arguments
from ._joined import MOST, _Joined, in_turns
from ._renamed import position


class Cat(_Joined):
    """Concatenates up to 999 inputs along an existing axis.

    Inputs must have the same type and the same extents along all other axes. The axis is given by `axis` or
    `axis_name`. The layout is that of the first input that has one.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.cat(types.Constant([[1, 2], [3, 4]]), types.Constant([[5], [6]]), axis=1)
    >>> pipe().run()[0].at(0).tolist()
    [[1, 2, 5], [3, 4, 6]]
    """

    axis = Arg(int, 0, "Index of the axis, from -ndim to ndim - 1. Negative values count from the last.")
    axis_name = Arg(str, None, "Name of the axis in the layout, instead of `axis`.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        if len(inputs) <= MOST:
            return None
        return call(cls, tuple(in_turns(inputs, lambda part: call(cls, part, kwargs))), kwargs)

    def setup(self) -> None:
        if {"axis", "axis_name"} <= self.given:
            raise ValueError(f"{self.display_name()}: give either 'axis' or 'axis_name', not both")
        name = self.values["axis_name"]
        if name is not None and len(name) != 1:
            raise ValueError(f"{self.display_name()}: 'axis_name' takes one character; got {name!r}")

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec:
        layout, first = self.layout_of(inputs), inputs[0]
        name = self.values["axis_name"]
        if name is None:
            if not first.ndim:
                raise ValueError("scalars have no axis to be joined along; use fn.stack")
            a.at = position(self.values["axis"], first.ndim)
        else:
            a.at = layout.find(name)
            if a.at < 0:
                raise ValueError(no_axis(name, "'axis_name'", layout))
        self.check(inputs, a.at)
        shape = first.shape.copy()
        for x in inputs[1:]:
            shape[:, a.at] += x.shape[:, a.at]
        return first.like(shape=shape, layout=layout)
