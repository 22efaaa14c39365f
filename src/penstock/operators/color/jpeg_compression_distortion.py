# SPDX-License-Identifier: Apache-2.0
"""The artefacts of JPEG compression."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, Operator, PerSample


class JpegCompressionDistortion(Operator):
    """Gives images the artefacts of JPEG compression: encodes and decodes them.

    The file that is made in between is of baseline JPEG with chroma of half the resolution (4:2:0), by libjpeg-turbo's
    accurate transform. Takes RGB images (HWC) and sequences of them, of type uint8.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((8, 8, 3), [200, 100, 0], np.uint8), layout="HWC")
    ...     return fn.jpeg_compression_distortion(x, quality=100), fn.jpeg_compression_distortion(x, quality=1)
    >>> [bool(abs(x.at(0)[0, 0] - np.array([200.0, 100.0, 0.0])).max() > 5) for x in pipe().run()]
    [False, True]
    """

    layouts = ("HWC", "FHWC")
    kernel = "color/jpeg_compression"
    windowed = "HW"
    quality = PerSample(int, 50, "From 1 (smallest files) to 100 (least distortion), in the scale of libjpeg; clamped.")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "uint8":
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8; fn.cast converts others")
        channels = x.shape[:, -1]
        SampleErrors.where(
            channels != 3, lambda i: f"RGB images have 3 channels; got {channels[i]} (shape {x.shape[i].tolist()})"
        )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"quality": np.clip(a.quality, 1, 100), "y": out.origin[:, 0], "x": out.origin[:, 1]}
