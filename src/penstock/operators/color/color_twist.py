# SPDX-License-Identifier: Apache-2.0
"""Changes hue, saturation, contrast and brightness at once."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments, PerFrame
from ._color_matrix import WithHue, WithImageType, WithSaturation

_FLOAT32 = np.dtype("f4")


class ColorTwist(WithHue, WithSaturation, WithImageType):
    """Changes hue, saturation, contrast and brightness of RGB images.

    Hue and saturation are changed in the YIQ space; then `out = brightness * (center + contrast * (in - center))` is
    computed with a center of 128 for integers and 0.5 for floats. All of it is one 3x3 matrix and an offset per pixel,
    in float32.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.array([[[200, 100, 50]]], np.uint8), layout="HWC")
    ...     return fn.color_twist(x, contrast=0.5, brightness=0.5)
    >>> pipe().run()[0].at(0).tolist()
    [[[82, 57, 45]]]
    """

    contrast = PerFrame(float, 1.0, "Factor of the distance to the center; 1 changes nothing, 0 gives a uniform grey.")
    brightness = PerFrame(float, 1.0, "Factor of all channels, applied last; 1 changes nothing, 0 gives black.")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        center = 0.5 if x.dtype.kind == "f" else 128.0
        offset, at = a.native.allocate((a.n, 3), _FLOAT32)
        a.native.call("color_offsets", a.n, a.brightness, a.contrast, round(2 * center), at)
        return {"matrix": self.matrix(a, a.hue, a.saturation, a.brightness, a.contrast), "offset": offset}
