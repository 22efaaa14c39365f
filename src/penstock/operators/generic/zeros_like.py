# SPDX-License-Identifier: Apache-2.0
"""Arrays of zeros, with the shape of the input."""

from ._filled import _Like


class ZerosLike(_Like):
    """Returns an array of zeros with the shape, layout and, unless `dtype` is given, the type of the input.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.zeros_like(types.Constant([5, 6, 7]))
    >>> pipe().run()[0].at(0).tolist()
    [0, 0, 0]
    """

    number = 0
