# SPDX-License-Identifier: Apache-2.0
"""Crops a window from images, volumes and sequences."""

from ...core.batch import Spec
from ...core.op import Arguments
from ._crop_window import CropWindow, WindowCopy


class Crop(WindowCopy, CropWindow):
    """Crops a window from images, volumes or sequences. After a decoder, only the window is decoded.

    Along an axis of size n, a window of size c at position p begins at `round(p * (n - c))`; sizes are truncated to
    integers. Values are converted to FLOAT, FLOAT16 or UINT8 without rounding (truncated and clamped).

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(20, dtype=np.uint8).reshape(4, 5, 1), layout="HWC")
    ...     return fn.crop(x, crop=(2, 3), crop_pos_x=1.0, crop_pos_y=0.0)
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[2, 3, 4], [7, 8, 9]]
    """

    layouts = ("HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", "FDHWC", "FCDHW", "CFDHW")

    def plan(self, a: Arguments, x: Spec) -> None:
        self.crop_window(a, x)
