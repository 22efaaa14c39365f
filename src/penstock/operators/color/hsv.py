# SPDX-License-Identifier: Apache-2.0
"""Changes hue, saturation and value."""

from typing import Any

from ...core.batch import Spec
from ...core.dtypes import DALIDataType
from ...core.op import Arg, Arguments, PerFrame
from ._color_matrix import WithHue, WithSaturation


class Hsv(WithHue, WithSaturation):
    """Changes hue, saturation and value (brightness) of RGB images.

    Hue and saturation are changed in the YIQ space, then all channels are multiplied by `value`. All of it is one 3x3
    matrix per pixel, in float32. This is not a conversion to the hexagonal HSV space and back.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.array([[[200, 100, 50]]], np.uint8), layout="HWC")
    ...     return fn.hsv(x, saturation=0.5, value=1.5)
    >>> pipe().run()[0].at(0).tolist()
    [[[243, 168, 131]]]
    """

    value = PerFrame(float, 1.0, "Factor of all channels; 1 changes nothing, 0 gives black.")
    dtype = Arg(DALIDataType, DALIDataType.UINT8, "Type of the output. NO_TYPE means that of the input.")

    def setup(self) -> None:
        if self.values["dtype"] is DALIDataType.NO_TYPE:
            self.values["dtype"] = None
        super().setup()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"matrix": self.matrix(a, a.hue, a.saturation, a.value)}
