# SPDX-License-Identifier: Apache-2.0
"""Largest elements."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ._reduction import Reduction


class Max(Reduction):
    """Returns the largest elements along some axes, in the type of the input.

    NaN is ignored. The largest of no elements is the smallest finite value of the type.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.reductions.max(types.Constant([[1, 7], [3, 2]]), axes=[1])
    >>> pipe().run()[0].at(0).tolist()
    [7, 3]
    """

    kernel = "reductions/extremum"

    def output_type(self, x: Spec) -> np.dtype:
        return x.dtype

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, *specs), "largest": True}
