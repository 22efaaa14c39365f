# SPDX-License-Identifier: Apache-2.0
"""Variances."""

from typing import Any

from ...core.batch import Spec
from ...core.op import Arguments
from ._reduction import Spread


class Variance(Spread):
    """Computes the variance along some axes: `sum((x - mean)^2) / (count - ddof)`, in float32.

    The second input is the mean, float32: of the shape of the output (with or without the reduced axes as extent 1), or
    one value for all. The result is computed in float64 from the distances, so small variances are accurate even if the
    mean is large. With `ddof=1` and the mean of the sample, the estimate is unbiased. The variance of no elements is
    NaN; a divisor of 0 gives infinity.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant([[1.0, 3.0], [2.0, 8.0]])
    ...     return fn.reductions.variance(x, types.Constant([2.0, 5.0]), axes=[1])
    >>> pipe().run()[0].at(0).tolist()
    [1.0, 9.0]
    """

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "ddof": a.ddof, "root": False}
