# SPDX-License-Identifier: Apache-2.0
"""Turns the hue."""

from typing import Any

from ...core.batch import Spec
from ...core.op import Arguments
from ._color_matrix import WithHue, WithImageType


class Hue(WithHue, WithImageType):
    """Rotates the hue of RGB images.

    Colours are rotated by `hue` degrees around the grey axis of the YIQ space, with one 3x3 matrix per pixel, in
    float32.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.array([[[200, 100, 50]]], np.uint8), layout="HWC")
    ...     return fn.hue(x, hue=90.0)
    >>> pipe().run()[0].at(0).tolist()
    [[[82, 172, 0]]]
    """

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"matrix": self.matrix(a, hue=a.hue)}
