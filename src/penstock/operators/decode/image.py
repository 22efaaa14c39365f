# SPDX-License-Identifier: Apache-2.0
"""Encoded images to pixels."""

from __future__ import annotations

import numpy as np

from ...core.op import Arg, Arguments
from ._decoder import Decoder
from ._headers import JPEG


class Image(Decoder):
    """Decodes images: JPEG, PNG, BMP, TIFF, WebP, PNM and JPEG 2000. The format is detected from the content.

    Input: the bytes of a file (uint8). Output: pixels (HWC). If a crop, slice or resize follows, only the part that it
    needs is decoded; the pixels are the same. JPEG pixels are those of libjpeg-turbo's exact DCT. A damaged or
    truncated file is an error of the sample, which the pipeline's `on_error` handles.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> file = np.frombuffer(b"P5 3 1 255 abc", np.uint8)  # a grey image in Netpbm's format
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.decoders.image(types.Constant(file), output_type=types.RGB)
    >>> pipe().run()[0].at(0).tolist()
    [[[97, 97, 97], [98, 98, 98], [99, 99, 99]]]
    """

    traced = True
    deprecated = ("ImageDecoder", "HostDecoder", "nvJPEGDecoder")
    former_defaults = {"nvJPEGDecoder": {"device": "mixed"}}

    dct_scaling = Arg(
        int,
        0,
        "Minimum length of the shorter side, in pixels, for example 256 before a resize to 256. JPEG is then decoded "
        "at 1/2, 1/4 or 1/8 of its size, the smallest whose shorter side has at least this many pixels. Much faster "
        "for large photographs; pixels differ slightly from a full decode that is scaled down afterwards. 0: full "
        "size.",
    )
    cache_batch_copy = Arg(bool, True, "Accepted for compatibility.", hidden=True)
    cache_debug = Arg(bool, False, "Accepted for compatibility.", hidden=True)
    cache_size = Arg(int, 0, "Accepted for compatibility.", hidden=True)
    cache_threshold = Arg(int, 0, "Accepted for compatibility.", hidden=True)
    cache_type = Arg(str, "", "Accepted for compatibility.", hidden=True)

    def setup(self) -> None:
        super().setup()
        side = self.values["dct_scaling"]
        if side < 0 or 0 < side < 8:
            raise ValueError(
                f"fn.decoders.image: dct_scaling takes the smallest side in pixels that is good enough (8 or more), or "
                f"0; got {side}"
            )

    def scale(self, a: Arguments, info: np.ndarray) -> np.ndarray | None:
        if not a.dct_scaling:
            return None
        scale, side = np.ones(a.n, "i4"), np.minimum(info["height"], info["width"])
        for s in (2, 4, 8):
            scale[(info["format"] == JPEG) & (-(-side // s) >= a.dct_scaling)] = s
        return scale
