# SPDX-License-Identifier: Apache-2.0
"""Dilation of images."""

from ._morphology import Morphology


class Dilate(Morphology):
    """Replaces each element by the largest value of its channel in a rectangular window.

    Input: images (HW, HWC, CHW) or sequences of them, of type uint8, uint16 or float32. By default, positions outside
    the image are ignored; see `border_mode`.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.experimental.dilate(types.Constant(np.uint8([[0, 0, 9, 0, 0]]), layout="HW"))
    >>> pipe().run()[0].at(0).tolist()
    [[0, 9, 9, 9, 0]]
    """

    dilates = True
