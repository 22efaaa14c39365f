# SPDX-License-Identifier: Apache-2.0
"""Means of squares."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ._reduction import TypedReduction, wide


class MeanSquare(TypedReduction):
    """Computes the mean of the squared elements along some axes: float32, or with `dtype` a 64-bit integer of the
    input's signedness, rounded towards 0.

    Computed in float64. The mean of no elements is NaN, or 0 as an integer.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.reductions.mean_square(types.Constant([[1, 2], [3, 4]]), axes=[1])
    >>> pipe().run()[0].at(0).tolist()
    [2.5, 12.5]
    """

    kernel = "reductions/mean_square"

    def choices(self, x: np.dtype) -> list[str]:
        return ["float32"] if x.kind == "f" else ["float32", wide(x)]

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "root": False}
