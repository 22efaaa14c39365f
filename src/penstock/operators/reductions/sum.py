# SPDX-License-Identifier: Apache-2.0
"""Sums."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ._reduction import TypedReduction, wide


class Sum(TypedReduction):
    """Computes the sum of the elements along some axes.

    By default, sums of integers are 64-bit integers of the same signedness. They are exact; a sum that does not fit
    into the type of the output wraps around (modulo 2^bits). Floats are summed in float64 and rounded once. The sum of
    no elements is 0.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.reductions.sum(types.Constant([[1, 2], [3, 4]]), axes=[0])
    >>> pipe().run()[0].at(0).tolist()
    [4, 6]
    """

    kernel = "reductions/sum"

    def choices(self, x: np.dtype) -> list[str]:
        if x.kind == "f":
            return ["float32"]
        if x.itemsize == 8:
            return [x.name]
        return [wide(x), "float32", x.name]

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "is_mean": False}
