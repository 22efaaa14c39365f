# SPDX-License-Identifier: Apache-2.0
"""Base of the operators that mix the three channels of a pixel: out = matrix * in + offset.

Hue is rotated and saturation scaled in the YIQ space of NTSC television, with its matrix rounded to three digits.
"""

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIImageType
from ...core.op import Arg, Arguments, PerFrame
from ._value import ValueOperator, check_channels

_RGB_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_YIQ_TO_RGB = np.linalg.inv(_RGB_TO_YIQ)
for _constant in (_RGB_TO_YIQ, _YIQ_TO_RGB):
    _constant.setflags(write=False)
_FLOAT32 = np.dtype("f4")


class ColorMatrix(ValueOperator, abstract=True):
    types = ("uint8", "int16", "int32", "float16", "float32")
    layouts = ("HWC", "FHWC", "DHWC")
    kernel = "color/color_matrix"
    windowed = "FDHW"  # not C: an output channel depends on all input channels

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        check_channels(x, 3)

    def matrix(self, a: Arguments, hue=None, saturation=None, value=None, contrast=None) -> np.ndarray:
        """`color_matrix` of columns (n,) with `scale = value * contrast`, (n, 9), float32. None has no effect."""
        out, at = a.native.allocate((a.n, 9), _FLOAT32)
        columns = (hue, saturation, value, contrast)
        a.native.call("color_matrices", a.n, *columns, _RGB_TO_YIQ, _YIQ_TO_RGB, at)
        return out


class WithHue(ColorMatrix, abstract=True):
    hue = PerFrame(float, 0.0, "Angle of the hue rotation, in degrees.")


class WithSaturation(ColorMatrix, abstract=True):
    saturation = PerFrame(float, 1.0, "Factor of the saturation; 1 changes nothing, 0 gives grey.")


class WithImageType(ColorMatrix, abstract=True):
    image_type = Arg(
        DALIImageType, DALIImageType.RGB, "Accepted for compatibility: the channels are always R, G, B.", hidden=True
    )


def color_matrix(n: int, hue=0.0, saturation=1.0, scale=1.0) -> np.ndarray:
    """Matrices (n, 9) on RGB that rotate the hue by `hue` degrees, multiply the saturation, then all channels by
    `scale`.

    The arguments are columns (n,) or numbers."""
    angle, chroma = np.radians(np.asarray(hue, "f8")), np.asarray(saturation, "f8")
    cos, sin = chroma * np.cos(angle), chroma * np.sin(angle)
    iq = np.zeros((n, 3, 3))
    iq[:, 0, 0] = 1
    iq[:, 1, 1] = iq[:, 2, 2] = cos
    iq[:, 1, 2], iq[:, 2, 1] = sin, -sin
    iq *= np.reshape(np.asarray(scale, "f8"), (-1, 1, 1))
    return (_YIQ_TO_RGB @ iq @ _RGB_TO_YIQ).reshape(n, 9)
