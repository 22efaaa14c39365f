# SPDX-License-Identifier: Apache-2.0
"""Arrays filled with a value, with the shape of the input."""

from __future__ import annotations

from typing import Any

from ...core.batch import Spec
from ...core.op import Arguments, Operator
from ._filled import check_broadcast


class FullLike(Operator):
    """Returns an array like the first input, filled with the second.

    The output has the shape, type and layout of the first input. The second input is a number, or an array that is
    broadcast to the shape as in NumPy. Its values are converted to the type and clamped.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.full_like(types.Constant(np.zeros((2, 2), np.uint8)), types.Constant([1, 300]))
    >>> pipe().run()[0].at(0).tolist()
    [[1, 255], [1, 255]]
    """

    inputs = (2, 2)
    by_frame = False
    metadata = (0,)
    copied = (1,)
    kernel = "generic/full"

    def outputs(self, a: Arguments, x: Spec, value: Spec) -> Spec:
        check_broadcast(value, x.shape)
        return x.like()

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"from": 1, "value": 0}
