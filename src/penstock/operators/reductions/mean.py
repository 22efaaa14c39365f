# SPDX-License-Identifier: Apache-2.0
"""Means."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ._reduction import TypedReduction


class Mean(TypedReduction):
    """Computes the mean along some axes: float32, or with `dtype` the integer type of the input, rounded towards 0.

    Computed from exact sums for integers; in float64 for floats, and for 64-bit integers if the output is float32. The
    mean of no elements is NaN, or 0 as an integer.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.reductions.mean(types.Constant([[1, 2], [3, 4]]), axes=[1])
    >>> pipe().run()[0].at(0).tolist()
    [1.5, 3.5]
    """

    kernel = "reductions/sum"

    def choices(self, x: np.dtype) -> list[str]:
        return ["float32"] if x.kind == "f" else ["float32", x.name]

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "is_mean": True}
