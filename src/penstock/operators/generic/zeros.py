# SPDX-License-Identifier: Apache-2.0
"""Arrays of zeros."""

from ._filled import _OfShape


class Zeros(_OfShape):
    """Returns an array of zeros, of any shape and type.

    The shape may differ from sample to sample. By default the output is a scalar.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.zeros(shape=[2, 3], dtype=types.UINT8)
    >>> pipe().run()[0].at(0).tolist()
    [[0, 0, 0], [0, 0, 0]]
    """

    number = 0
