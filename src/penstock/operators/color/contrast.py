# SPDX-License-Identifier: Apache-2.0
"""out = contrast_center + contrast * (in - contrast_center)."""

from typing import Any

from ...core.batch import Spec
from ...core.dtypes import middle
from ...core.op import Arguments, PerFrame
from ._linear import Linear


class Contrast(Linear):
    """Adjusts the contrast of images: `out = contrast_center + contrast * (in - contrast_center)`.

    By default `contrast_center` is the middle of the input type's range: 128 for uint8, 2^14 for int16, 2^30 for int32,
    0.5 for floats.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((1, 2, 3), 100, np.uint8), layout="HWC")
    ...     return fn.contrast(x, contrast=0.5)
    >>> int(pipe().run()[0].at(0)[0, 0, 0])
    114
    """

    contrast = PerFrame(float, 1.0, "Factor of the distance to the centre; 1 changes nothing, 0 gives a uniform grey.")
    contrast_center = PerFrame(
        float, None, "The value that is not changed. By default the middle of the input type's range."
    )

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        center = middle(x.dtype) if a.contrast_center is None else a.contrast_center
        return {"mul": a.contrast, "add": center - a.contrast * center}
