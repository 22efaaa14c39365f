# SPDX-License-Identifier: Apache-2.0
"""Erosion of images."""

from ._morphology import Morphology


class Erode(Morphology):
    """Replaces each element by the smallest value of its channel in a rectangular window.

    Input: images (HW, HWC, CHW) or sequences of them, of type uint8, uint16 or float32. By default, positions outside
    the image are ignored; see `border_mode`.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.experimental.erode(types.Constant(np.uint8([[9, 9, 0, 9, 9]]), layout="HW"))
    >>> pipe().run()[0].at(0).tolist()
    [[9, 0, 0, 0, 9]]
    """
