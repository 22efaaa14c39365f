# SPDX-License-Identifier: Apache-2.0
"""Stacks inputs along a new axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import REGISTRY, Arg, Arguments
from ._joined import MOST, _Joined, in_turns


class Stack(_Joined):
    """Stacks up to 999 inputs of the same shape and type along a new axis.

    `axis` is the index of the new axis in the output: 0 stacks whole inputs, the number of their axes stacks their
    elements. `axis_name` is inserted into the layout; without it, the output has no layout.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.stack(types.Constant([1, 2]), types.Constant([3, 4]), axis=1)
    >>> pipe().run()[0].at(0).tolist()
    [[1, 3], [2, 4]]
    """

    axis = Arg(int, 0, "Index of the new axis in the output, from -ndim. Negative values count from the last.")
    axis_name = Arg(str, None, "Name of the new axis.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        if len(inputs) <= MOST:
            return None
        parts = tuple(in_turns(inputs, lambda part: call(_Part, part, kwargs)))
        more = {k: v for k, v in kwargs.items() if k not in ("axis", "axis_name")}
        if kwargs.get("axis_name") is None:
            return call(REGISTRY["cat"], parts, {**more, "axis": kwargs.get("axis", 0)})
        return call(REGISTRY["cat"], parts, {**more, "axis_name": kwargs["axis_name"]})

    def setup(self) -> None:
        name = self.values["axis_name"]
        if name is not None and len(name) != 1:
            raise ValueError(f"{self.display_name()}: 'axis_name' takes one character; got {name!r}")

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec:
        layout, first = self.layout_of(inputs), inputs[0]
        self.check(inputs, -1)
        axis = self.values["axis"]
        if not -first.ndim <= axis <= first.ndim:
            raise ValueError(
                f"axis {axis} is out of range for inputs of {first.ndim} axes: {-first.ndim} to {first.ndim}"
            )
        a.at = axis if axis >= 0 else axis + first.ndim + 1
        name = self.values["axis_name"]
        if name is not None and first.ndim and not layout:
            self.without_layout(name)
            name = None
        named = layout[: a.at] + name + layout[a.at :] if name is not None else ""
        shape = np.insert(first.shape, a.at, len(inputs), axis=1)
        return first.like(shape=shape, layout=named)

    def without_layout(self, name: str) -> None:
        raise ValueError(f"axis_name='{name}' needs inputs with a layout, or scalars")


class _Part(Stack):
    """A group of many inputs. The layout may be that of another group."""

    @classmethod
    def display_name(cls) -> str:
        return Stack.display_name()

    def without_layout(self, name: str) -> None:
        pass
