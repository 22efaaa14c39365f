# SPDX-License-Identifier: Apache-2.0
"""Conversion to the type of another batch."""

from ...core.batch import Spec
from ...core.op import Arguments, Pointwise


class CastLike(Pointwise):
    """Converts the first input to the type of the second, as `fn.cast` does. The data of the second input is not used.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.cast_like(types.Constant([-1.5, 0.5, 2.4]), types.Constant([1, 2]))
    >>> pipe().run()[0].at(0).tolist()
    [-2, 1, 2]
    """

    inputs = (2, 2)
    by_frame = False  # the second input's frames are irrelevant
    metadata = (1,)
    kernel = "generic/cast"

    def outputs(self, a: Arguments, x: Spec, like: Spec) -> Spec:
        return x.like(dtype=like.dtype)
