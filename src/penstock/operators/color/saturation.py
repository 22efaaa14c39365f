# SPDX-License-Identifier: Apache-2.0
"""Changes the saturation."""

from typing import Any

from ...core.batch import Spec
from ...core.op import Arguments
from ._color_matrix import WithImageType, WithSaturation


class Saturation(WithSaturation, WithImageType):
    """Changes the saturation of RGB images.

    The chroma of each pixel in the YIQ space is multiplied by `saturation`, with one 3x3 matrix per pixel, in float32.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.array([[[200, 100, 50]]], np.uint8), layout="HWC")
    ...     return fn.saturation(x, saturation=0.5)
    >>> pipe().run()[0].at(0).tolist()
    [[[162, 112, 87]]]
    """

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"matrix": self.matrix(a, saturation=a.saturation)}
