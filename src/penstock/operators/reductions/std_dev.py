# SPDX-License-Identifier: Apache-2.0
"""Standard deviations."""

from typing import Any

from ...core.batch import Spec
from ...core.op import Arguments
from ._reduction import Spread


class StdDev(Spread):
    """Computes the standard deviation along some axes: `sqrt(sum((x - mean)^2) / (count - ddof))`, in float32.

    The second input is the mean, float32: of the shape of the output (with or without the reduced axes as extent 1), or
    one value for all. The result is computed in float64 from the distances, so small deviations are accurate even if
    the mean is large. The deviation of no elements is NaN; a divisor of 0 gives infinity.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant([[1.0, 3.0], [2.0, 8.0]])
    ...     return fn.reductions.std_dev(x, types.Constant([2.0, 5.0]), axes=[1])
    >>> pipe().run()[0].at(0).tolist()
    [1.0, 3.0]
    """

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "ddof": a.ddof, "root": True}
