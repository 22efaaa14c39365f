# SPDX-License-Identifier: Apache-2.0
"""The artefacts of JPEG compression."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, Operator, PerSample

_MOST = 65500  # libjpeg's limit, pixels per side
_PLANES = 384  # samples of YCbCr in a macroblock


class JpegCompressionDistortion(Operator):
    """Adds the artefacts of JPEG compression to images, by encoding and decoding them.

    Images are encoded as baseline JPEG with chroma of half the resolution (4:2:0) and the accurate transform of
    libjpeg-turbo. The GPU creates no file but returns the same pixels, bit for bit. Input: RGB images (HWC) or
    sequences of them, uint8, with at most 65500 pixels a side.

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
    quality = PerSample(int, 50, "Quality from 1 (smallest files) to 100 (least distortion), as in libjpeg; clamped.")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "uint8":
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8; fn.cast converts others")
        channels = x.shape[:, -1]
        SampleErrors.where(
            channels != 3, lambda i: f"RGB images have 3 channels; got {channels[i]} (shape {x.shape[i].tolist()})"
        )
        SampleErrors.where(
            x.shape[:, :2].max(axis=1, initial=0) > _MOST,
            lambda i: f"JPEG: images have at most {_MOST} pixels a side; got shape {x.shape[i].tolist()}",
        )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        origin, stored = out.origin[:, :2], out.stored[:, :2]
        # Macroblocks of 16 x 16 pixels that the window needs, including a border of one chroma sample (2 x 2 pixels).
        first = np.maximum(origin // 2 - 1, 0) // 8
        last = np.minimum((origin + stored - 1) // 2 + 1, (x.shape[:, :2] + 1) // 2 - 1) // 8
        macroblocks = (last - first + 1).prod(axis=1) * (stored > 0).all(axis=1)
        ends = np.cumsum(macroblocks * _PLANES)
        planes = np.stack([ends - macroblocks * _PLANES, ends], axis=1)
        return {"quality": np.clip(a.quality, 1, 100), "y": origin[:, 0], "x": origin[:, 1], "planes": planes}
