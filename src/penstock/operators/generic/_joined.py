# SPDX-License-Identifier: Apache-2.0
"""Base of operators that join their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, Operator

MOST = 7  # inputs of one kernel; more are joined in groups


class _Joined(Operator, abstract=True):
    """All inputs must have the same type and number of axes."""

    inputs = (1, 999)
    by_frame = False
    kernel = "generic/cat"

    def check(self, inputs: tuple[Spec, ...], joined: int) -> None:
        """Raises errors for inputs that do not fit. `joined`: the axis along which extents may differ, or -1."""
        first = inputs[0]
        for i, x in enumerate(inputs[1:], 1):
            if x.dtype != first.dtype:
                raise ValueError(
                    f"all inputs need the same type; input 0 is {first.dtype.name}, input {i} {x.dtype.name}: fn.cast "
                    "one of them"
                )
            if x.ndim != first.ndim:
                raise ValueError(
                    f"all inputs need the same number of axes; input 0 has {first.ndim}, input {i} {x.ndim}"
                )
            differs = x.shape != first.shape
            if joined >= 0:
                differs[:, joined] = False
            SampleErrors.where(
                differs.any(axis=1),
                lambda k, i=i, x=x: (
                    f"input {i} of shape {x.shape[k].tolist()} does not fit input 0 of shape "
                    f"{first.shape[k].tolist()}" + (f" along all axes but {joined}" if joined >= 0 else "")
                ),
            )

    def layout_of(self, inputs: tuple[Spec, ...]) -> str:
        """The layout of the first input that has one."""
        return next((x.layout for x in inputs if x.layout), "")

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"inputs": len(specs) - 1, "axis": a.at}


def in_turns(inputs: tuple, join: Callable[[tuple], Any]) -> list[Any]:
    """Joins consecutive inputs in groups of at most MOST."""
    groups = np.array_split(np.arange(len(inputs)), -(-len(inputs) // MOST))
    return [join(tuple(inputs[i] for i in g)) for g in groups]
