# SPDX-License-Identifier: Apache-2.0
"""Arrays filled with a value."""

from __future__ import annotations

from typing import Any

from ...core.batch import Spec
from ...core.op import Arg, Arguments, Layout, Operator, PerSample
from ._filled import check_broadcast, layout_of, shape_of


class Full(Operator):
    """Returns an array of the given shape, filled with the input.

    The input is a number, or an array that is broadcast to the shape as in NumPy. The output has the type of the input.
    Without a `shape`, it is a scalar.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.full(types.Constant([1, 2, 3]), shape=[2, 3])
    >>> pipe().run()[0].at(0).tolist()
    [[1, 2, 3], [1, 2, 3]]
    """

    by_frame = False
    kernel = "generic/full"
    shape = PerSample([int], None, "Shape of the output. By default it is a scalar.")
    layout = Arg(Layout, None, "Layout of the output, with one name per axis.")

    def outputs(self, a: Arguments, value: Spec) -> Spec:
        shape = shape_of(a)
        check_broadcast(value, shape)
        return Spec(shape, value.dtype, layout_of(a.layout, shape.shape[1]))

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"from": 0, "value": 0}
