# SPDX-License-Identifier: Apache-2.0
"""Crops a random part of an image and resizes it."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments, Seeded
from ._random_window import RandomWindow
from ._resampling import IMAGES, Resampling

_FLOAT64, _INT64 = np.dtype("f8"), np.dtype("i8")


class RandomResizedCrop(Seeded, RandomWindow, Resampling):
    """Crops a random part of an image (HWC, CHW) and resizes it to `size`.

    The area of the part, as a share of the image's, and its aspect ratio are random (Szegedy et al., Going Deeper with
    Convolutions, 2015, the augmentation of ImageNet training). All frames of a sequence get the same part. Filters use
    pixels of the image beyond the part's border. Accepts the types of `resize`.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((40, 60, 3), 7, np.uint8), layout="HWC")
    ...     return fn.random_resized_crop(x, size=(8, 8))
    >>> pipe().run()[0].at(0).shape
    (8, 8, 3)
    """

    layouts = IMAGES
    size = Arg([int], doc="Height and width of the output, or one number for both.")

    def setup(self) -> None:
        super().setup()
        size = self.values["size"]
        if len(size) not in (1, 2) or min(size) < 1:
            raise ValueError(f"size takes one or two positive numbers, height and width; got {size}")
        self.wanted = np.array(size * (2 // len(size)), "i8")
        self.wanted.setflags(write=False)

    def plan(self, a: Arguments, x: Spec) -> None:
        self.check_types(a, x)
        origin, window = self.draw(a, x.shape, (x.axis("H"), x.axis("W")))
        n, k = window.shape
        (region, at), (a.size, at_size) = a.native.allocate((2, n, k), _FLOAT64), a.native.allocate((n, k), _INT64)
        a.start, a.end = region
        a.native.call("region_sizes", origin, window, n, k, self.wanted, at_size, at)
