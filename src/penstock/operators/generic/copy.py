# SPDX-License-Identifier: Apache-2.0
"""A copy."""

from ...core.op import Pointwise


class Copy(Pointwise):
    """Copies its input, of any type and layout, into memory of its own.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.copy(types.Constant([1, 2, 3]))
    >>> pipe().run()[0].at(0).tolist()
    [1, 2, 3]
    """

    kernel = "generic/copy"
