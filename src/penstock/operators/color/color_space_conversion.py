# SPDX-License-Identifier: Apache-2.0
"""Conversion between colour spaces."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIImageType
from ...core.op import Arg, Arguments, Pointwise
from ._value import check_channels

_SPACES = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY, DALIImageType.YCbCr)


class ColorSpaceConversion(Pointwise):
    """Converts uint8 images between RGB, BGR, GRAY and YCbCr.

    YCbCr is defined by Rec. ITU-R BT.601 with studio range: Y in [16, 235], Cb and Cr in [16, 240]. GRAY has one
    channel, the luma 0.299 R + 0.587 G + 0.114 B in the full range [0, 255]. If both spaces are the same, the image is
    copied.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.array([[[255, 0, 0]]], np.uint8), layout="HWC")
    ...     return fn.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr)
    >>> pipe().run()[0].at(0).tolist()
    [[[81, 90, 240]]]
    """

    layouts = ("FDHWC", "FHWC", "DHWC", "HWC")
    windowed = "FDHW"
    kernel = "color/color_space"
    image_type = Arg(DALIImageType, doc="Colour space of the input.")
    output_type = Arg(DALIImageType, doc="Colour space of the output.")

    def setup(self) -> None:
        for name in ("image_type", "output_type"):
            if self.values[name] not in _SPACES:
                raise ValueError(f"argument '{name}' takes types.RGB, BGR, GRAY or YCbCr, got {self.values[name]}")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype != np.uint8:
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8; fn.cast converts others")
        check_channels(x, 1 if a.image_type is DALIImageType.GRAY else 3)

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, x.axis("C")] = 1 if a.output_type is DALIImageType.GRAY else 3
        return x.like(shape=shape)

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        stored = out.stored.copy()
        stored[:, x.axis("C")] = x.extent("C")
        return out.origin, stored

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"from": int(a.image_type), "to": int(a.output_type)}
