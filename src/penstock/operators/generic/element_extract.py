# SPDX-License-Identifier: Apache-2.0
"""Single frames of a sequence, each an output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator


class ElementExtract(Operator):
    """Takes frames out of a sequence: one output for each number in `element_map`, without the axis of frames.

    Frames are what the first axis counts; a layout must begin with F, and loses it.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     last, first = fn.element_extract(types.Constant([[1, 2], [3, 4]], layout="FX"), element_map=[1, 0])
    ...     return last, first
    >>> [out.at(0).tolist() for out in pipe().run()]
    [[3, 4], [1, 2]]
    """

    frames = False
    kernel = "generic/frames"
    element_map = Arg([int], doc="Indices of frames, counted from 0.")

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        wanted = kwargs.get("element_map")
        if wanted is None:
            return None
        each = [int(e) for e in np.ravel(wanted)]
        rest = {k: v for k, v in kwargs.items() if k != "element_map"}
        outs = [call(_Element, inputs, {**rest, "element_map": [e]}) for e in each]
        return outs[0] if len(outs) == 1 else outs

    def setup(self) -> None:
        negative = [e for e in self.values["element_map"] if e < 0]
        if negative:
            raise ValueError(f"{self.display_name()}: element_map counts frames from 0; got {negative[0]}")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        if x.ndim < 2:
            raise ValueError(f"the input needs an axis of frames and at least one of their own; got {x.ndim}")
        if x.layout and x.layout[0] != "F":
            raise ValueError(f"the first axis must count frames (F); got the layout '{x.layout}'")
        e = self.values["element_map"][0]
        bad = x.shape[:, 0] <= e
        SampleErrors.where(bad, lambda i: f"element_map has {e}; the sequence has {x.shape[i, 0]} frames")
        return x.like(shape=x.shape[:, 1:], layout=x.layout[1:])

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"order": np.array([self.values["element_map"]], "i4"), "count": 1}


class _Element(ElementExtract):
    """One frame."""

    @classmethod
    def display_name(cls) -> str:
        return ElementExtract.display_name()

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> None:
        return None
