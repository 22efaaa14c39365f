# SPDX-License-Identifier: Apache-2.0
"""out = brightness_shift * full + brightness * (contrast_center + contrast * (in - contrast_center))."""

from typing import Any

from ...core.batch import Spec
from ...core.op import Arguments
from .brightness import Brightness
from .contrast import Contrast


class BrightnessContrast(Brightness, Contrast):
    """Adjusts contrast, then brightness:
    `out = brightness_shift * full + brightness * (contrast_center + contrast * (in - contrast_center))`.

    `full` is the largest value of the output type (1.0 for floats). By default `contrast_center` is the middle of the
    input type's range: 128 for uint8, 2^14 for int16, 2^30 for int32, 0.5 for floats.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((1, 2, 3), 100, np.uint8), layout="HWC")
    ...     return fn.brightness_contrast(x, brightness=1.5, contrast=0.5)
    >>> int(pipe().run()[0].at(0)[0, 0, 0])
    171
    """

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        brighter, stretched = Brightness.params(self, a, x, out), Contrast.params(self, a, x, out)
        add = brighter["add"] + brighter["mul"] * stretched["add"]
        return {"mul": brighter["mul"] * stretched["mul"], "add": add}
