# SPDX-License-Identifier: Apache-2.0
"""Resizing, under the name of DALI's other implementation."""

from ..geometry.resize import Resize as _Resize


class Resize(_Resize):
    """Resizes images in the same way as `fn.resize`. DALI has another implementation under this name, on the GPU only.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((40, 60, 3), 7, np.uint8), layout="HWC")
    ...     return fn.experimental.resize(x, resize_shorter=20)
    >>> pipe().run()[0].at(0).shape
    (20, 30, 3)
    """

    module = "experimental"
