# SPDX-License-Identifier: Apache-2.0
"""Smoothing by medians."""

from typing import Any

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample
from ._image_window import ImageWindow
from ._morphology import two

_MOST_ELEMENTS = 65535


class MedianBlur(ImageWindow):
    """Replaces each element by the median of its channel in a rectangular window around it.

    The border is repeated (`aaa|abcd|ddd`). Input: images (HW, HWC, CHW) or sequences of them, of type uint8, uint16 or
    float32.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.uint8([[1, 2, 90, 3, 4]]), layout="HW")
    ...     return fn.experimental.median_blur(x, window_size=[3, 1])
    >>> pipe().run()[0].at(0).tolist()
    [[1, 2, 3, 4, 4]]
    """

    kernel = "filter/median"

    window_size = PerSample([int], [3, 3], "Width and height of the window, odd.")

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        a.size = two(a.window_size, "window_size")
        SampleErrors.where(
            ((a.size < 1) | (a.size % 2 == 0)).any(axis=1),
            lambda i: f"`window_size` must be odd and positive, got {a.size[i].tolist()}",
        )
        SampleErrors.where(
            a.size.prod(axis=1, dtype="i8") > _MOST_ELEMENTS,
            lambda i: f"a window of {a.size[i].tolist()} is too large; it may have {_MOST_ELEMENTS} elements",
        )

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"size": a.size[:, ::-1], "n_outer": a.n_outer}
