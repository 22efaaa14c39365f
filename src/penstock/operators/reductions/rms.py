# SPDX-License-Identifier: Apache-2.0
"""Root mean squares."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ._reduction import TypedReduction


class RMS(TypedReduction):
    """Computes the root mean square along some axes: float32, or with `dtype` the integer type of the input, rounded
    towards 0.

    Computed in float64. The value of no elements is NaN, or 0 as an integer.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.reductions.rms(types.Constant([[1, 7], [0, 0]]), axes=[1])
    >>> pipe().run()[0].at(0).tolist()
    [5.0, 0.0]
    """

    kernel = "reductions/mean_square"

    def choices(self, x: np.dtype) -> list[str]:
        return ["float32"] if x.kind == "f" else ["float32", x.name]

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "root": True}
