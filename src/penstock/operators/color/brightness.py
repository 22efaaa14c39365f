# SPDX-License-Identifier: Apache-2.0
"""out = brightness_shift * full + brightness * in."""

from typing import Any

from ...core.batch import Spec
from ...core.dtypes import full
from ...core.op import Arguments, PerFrame
from ._linear import Linear


class Brightness(Linear):
    """Adjusts the brightness of images: `out = brightness_shift * full + brightness * in`.

    `full` is the largest value of the output type (1.0 for floats).

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((1, 2, 3), 100, np.uint8), layout="HWC")
    ...     return fn.brightness(x, brightness=1.5)
    >>> int(pipe().run()[0].at(0)[0, 0, 0])
    150
    """

    brightness = PerFrame(float, 1.0, "Factor of every value; 1 changes nothing, 0 gives black.")
    brightness_shift = PerFrame(float, 0.0, "Added last, in units of the output's full range: 1.0 adds 255 for uint8.")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"mul": a.brightness, "add": a.brightness_shift * full(out.dtype)}
