# SPDX-License-Identifier: Apache-2.0
"""Encoded images to a window given by coordinates."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments
from ..geometry._slice_window import SliceWindow
from ._decoder import Decoder


class ImageSlice(SliceWindow, Decoder):
    """Decodes a window of an image. Equivalent to `decoders.image` followed by `slice`, but decodes only the window.

    The window is given as in `slice`, by arguments or by two more inputs, anchor and shape, of which integers are
    pixels, and floats are relative unless `normalized_anchor` or `normalized_shape` is False. Axis 0 is the height, 1
    the width. The window must lie inside the image.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> file = np.frombuffer(b"P5 3 1 255 abc", np.uint8)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     image = types.Constant(file)
    ...     return fn.decoders.image_slice(image, start=[1], shape=[2], axis_names="W", output_type=types.GRAY)
    >>> pipe().run()[0].at(0).tolist()
    [[[98], [99]]]
    """

    peeks = (0, 1, 2)
    deprecated = ("ImageDecoderSlice", "HostDecoderSlice", "nvJPEGDecoderSlice")
    former_defaults = {"nvJPEGDecoderSlice": {"device": "mixed"}}

    def setup(self) -> None:
        super().setup()
        names = self.values["axis_names"]
        if not set(names) <= set("HW"):
            raise ValueError(f"axis_names takes some of 'W' and 'H', got {str(names)!r}")

    def place(self, a: Arguments) -> None:
        image = Spec(np.stack([a.height, a.width], axis=1), self.type, "HW")
        first, size = self.slice_window(a, image, len(a.batches) - 1)
        (a.y, a.x), (a.h, a.w) = first.T, size.T
        self.refuse_outside(a)
