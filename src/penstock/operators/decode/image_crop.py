# SPDX-License-Identifier: Apache-2.0
"""Encoded images to a window of fixed size."""

from __future__ import annotations

import numpy as np

from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample
from ._decoder import Decoder


class ImageCrop(Decoder):
    """Decodes a window of an image. Equivalent to `decoders.image` followed by `crop`, but decodes only the window.

    Along an axis of n pixels, a window of c pixels at position p begins at round(p * (n - c)). It must lie inside the
    image.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> file = np.frombuffer(b"P5 3 1 255 abc", np.uint8)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.decoders.image_crop(types.Constant(file), crop=(1, 2), crop_pos_x=1.0, output_type=types.GRAY)
    >>> pipe().run()[0].at(0).tolist()
    [[[98], [99]]]
    """

    deprecated = ("ImageDecoderCrop", "HostDecoderCrop", "nvJPEGDecoderCrop")
    former_defaults = {"nvJPEGDecoderCrop": {"device": "mixed"}}

    crop = PerSample([float], None, "Size of the window: (height, width). 0 or less keeps the whole axis.")
    crop_d = PerSample(float, 0.0, "Accepted for compatibility; images have no depth.", hidden=True)
    crop_h = PerSample(float, 0.0, "Height of the window in pixels. Requires `crop_w`; not together with `crop`.")
    crop_w = PerSample(float, 0.0, "Width of the window in pixels. Requires `crop_h`; not together with `crop`.")
    crop_pos_x = PerSample(float, 0.5, "Horizontal position of the window, from 0.0 (left) to 1.0 (right).")
    crop_pos_y = PerSample(float, 0.5, "Vertical position of the window, from 0.0 (top) to 1.0 (bottom).")
    crop_pos_z = PerSample(float, 0.5, "Accepted for compatibility; images have no depth.", hidden=True)
    rounding = Arg(str, "round", "Rounding of the first pixel's position: 'round' (halves up) or 'truncate'.")

    def setup(self) -> None:
        super().setup()
        given, rounding, crop = self.given, self.values["rounding"], self.values["crop"]
        name = self.display_name()
        if rounding not in ("round", "truncate"):
            raise ValueError(f"{name}: rounding={rounding!r} is not supported; supported: round, truncate")
        if "crop" in given and given & {"crop_h", "crop_w", "crop_d"}:
            raise ValueError(f"{name}: give the window either as `crop` or as `crop_h` and `crop_w`, not both")
        if ("crop_h" in given) != ("crop_w" in given):
            raise ValueError(f"{name}: `crop_h` and `crop_w` must be given together")
        if crop is not None and len(crop) not in (2, 3):
            raise ValueError(f"{name}: `crop` takes (height, width), got {crop}")

    def place(self, a: Arguments) -> None:
        if a.crop is not None and a.crop.shape[1] not in (2, 3):
            raise ValueError(f"`crop` takes 2 or 3 values per sample, got {a.crop.shape[1]}")
        sizes = np.stack([a.crop_h, a.crop_w], axis=1) if a.crop is None else a.crop[:, -2:]
        SampleErrors.where(~np.isfinite(sizes).all(axis=1), lambda i: f"the size of the window is {sizes[i].tolist()}")
        sizes = np.minimum(sizes, 1e15).astype("i8")  # truncates
        a.h = np.where(sizes[:, 0] > 0, sizes[:, 0], a.height)
        a.w = np.where(sizes[:, 1] > 0, sizes[:, 1], a.width)
        a.y = self._begin(a.crop_pos_y, a.height - a.h, "crop_pos_y")
        a.x = self._begin(a.crop_pos_x, a.width - a.w, "crop_pos_x")
        self.refuse_outside(a)

    def _begin(self, position: np.ndarray, room: np.ndarray, name: str) -> np.ndarray:
        SampleErrors.where(
            ~((position >= 0) & (position <= 1)), lambda i: f"{name} is {position[i]:g}; it must be in [0.0, 1.0]"
        )
        place = position * room.astype("f8")
        if self.values["rounding"] == "round":
            place = place + np.copysign(0.5, place)
        return np.trunc(place).astype("i8")
