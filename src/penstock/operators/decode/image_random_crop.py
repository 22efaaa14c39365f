# SPDX-License-Identifier: Apache-2.0
"""Encoded images to a window of random area and aspect ratio."""

from __future__ import annotations

import numpy as np

from ...core.op import Arg, Arguments, Seeded
from ._decoder import Decoder

_TINY = float(np.finfo("f4").tiny)


class ImageRandomCrop(Seeded, Decoder):
    """Decodes a random window of an image. Equivalent to `decoders.image` followed by a random crop, but decodes only
    the window.

    The window's share of the image's area is uniform in `random_area`, and the logarithm of its aspect ratio (width /
    height) is uniform in `random_aspect_ratio`. A window that does not fit is drawn again, up to `num_attempts` times;
    then the largest window with an allowed aspect ratio is used. Its position is uniform inside the image (Szegedy et
    al.: Going deeper with convolutions, 2015, section 6).

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> file = np.frombuffer(b"P5 3 1 255 abc", np.uint8)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.decoders.image_random_crop(types.Constant(file), random_aspect_ratio=[2.0, 2.0], seed=1)
    >>> pipe().run()[0].at(0).shape
    (1, 2, 3)
    """

    deprecated = ("ImageDecoderRandomCrop", "HostDecoderRandomCrop", "nvJPEGDecoderRandomCrop")
    former_defaults = {"nvJPEGDecoderRandomCrop": {"device": "mixed"}}

    random_area = Arg([float], [0.08, 1.0], "Range of the window's share of the image's area.")
    random_aspect_ratio = Arg([float], [3 / 4, 4 / 3], "Range of the window's width divided by its height.")
    num_attempts = Arg(int, 10, "Number of windows drawn before the largest possible one is used.")

    def setup(self) -> None:
        super().setup()
        # An area of 0 gives a window of one pixel; a ratio of 0 has no logarithm.
        for name, smallest, text in (("random_area", 0.0, "0 or more"), ("random_aspect_ratio", _TINY, "positive")):
            v = self.values[name]
            if len(v) != 2 or not smallest <= v[0] <= v[1]:
                raise ValueError(f"{self.display_name()}: {name} takes two ascending numbers, {text}; got {v}")
        if self.values["num_attempts"] < 1:
            raise ValueError(f"{self.display_name()}: num_attempts is at least 1; got {self.values['num_attempts']}")

    def place(self, a: Arguments) -> None:
        attempts = a.num_attempts
        u = a.random.uniform(2 * attempts + 2)
        lo, hi = a.random_area
        ratio_lo, ratio_hi = a.random_aspect_ratio
        height, width = a.height[:, None], a.width[:, None]
        area = (lo + (hi - lo) * u[:, :attempts]) * (height * width)
        ratio = ratio_lo * (ratio_hi / ratio_lo) ** u[:, attempts : 2 * attempts]
        w = np.maximum(np.floor(np.sqrt(area * ratio) + 0.5), 1)
        h = np.maximum(np.floor(np.sqrt(area / ratio) + 0.5), 1)
        # Tolerance for rounding, which may move the ratio out of its range; larger for a range with a single value.
        slack = 1e-9 if ratio_lo < ratio_hi else 0.5
        ok = (w <= width) & (h <= height) & (w / h >= ratio_lo * (1 - slack)) & (w / h <= ratio_hi * (1 + slack))
        first = ok.argmax(axis=1)
        rows = np.arange(a.n)
        h_max, w_max = self._largest(a, ratio_lo, ratio_hi, hi)
        a.h = np.where(ok.any(axis=1), h[rows, first], h_max).astype("i8")
        a.w = np.where(ok.any(axis=1), w[rows, first], w_max).astype("i8")
        a.y = np.floor(u[:, -2] * (a.height - a.h + 1)).astype("i8")
        a.x = np.floor(u[:, -1] * (a.width - a.w + 1)).astype("i8")

    @staticmethod
    def _largest(a: Arguments, ratio_lo: float, ratio_hi: float, area: float) -> tuple[np.ndarray, np.ndarray]:
        """The largest window with an allowed ratio, reduced if its area is not allowed."""
        h = np.minimum(a.height, a.width / ratio_lo)
        w = np.minimum(a.width, a.height * ratio_hi)
        shrink = np.sqrt(np.minimum(1, area * a.height * a.width / (h * w)))
        return np.maximum(np.floor(h * shrink + 0.5), 1), np.maximum(np.floor(w * shrink + 0.5), 1)
