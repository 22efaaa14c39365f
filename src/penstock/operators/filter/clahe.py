# SPDX-License-Identifier: Apache-2.0
"""Contrast limited adaptive equalisation of histograms."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator
from . import _lab

_MOST_TILES = 1 << 20  # tiles; each needs a table of 256 bytes


class Clahe(Operator):
    """Applies contrast limited adaptive histogram equalisation (CLAHE) to images.

    The image is divided into `tiles_x` times `tiles_y` tiles of equal size; if they do not fit, it is extended by
    reflection at the right and at the bottom. In the histogram of each tile, bins larger than `clip_limit` times the
    average bin are cut, and the excess is spread over all bins. The cumulative histogram maps values to new values, and
    each element is interpolated between the maps of the four tiles around it. Images are uint8, HWC, with 1 or 3
    channels. With 3 channels (RGB), only the lightness L of CIE L*a*b* is changed unless `luma_only` is False. (K.
    Zuiderveld, Contrast limited adaptive histogram equalization, Graphics Gems IV, 1994.)

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.uint8([[[100], [101], [102], [103]]]), layout="HWC")
    ...     return fn.clahe(x, tiles_x=1, tiles_y=1, clip_limit=256.0)
    >>> pipe().run()[0].at(0).ravel().tolist()
    [64, 128, 191, 255]
    """

    layouts = ("HWC",)
    kernel = "filter/clahe"

    tiles_x = Arg(int, doc="Number of tiles along the width.")
    tiles_y = Arg(int, doc="Number of tiles along the height.")
    clip_limit = Arg(float, doc="Maximum size of a bin, as a multiple of the average bin; 0 or less: no limit.")
    bins = Arg(int, 256, "Accepted for compatibility; the histograms of bytes have 256 bins.", hidden=True)
    luma_only = Arg(bool, True, "Whether to change only the lightness of RGB images, or each channel separately.")

    def setup(self) -> None:
        for name in ("tiles_x", "tiles_y"):
            if self.values[name] < 1:
                raise ValueError(f"{name}={self.values[name]} must be at least 1")
        if self.values["tiles_x"] * self.values["tiles_y"] > _MOST_TILES:
            raise ValueError(
                f"tiles_x={self.values['tiles_x']} by tiles_y={self.values['tiles_y']} are too many tiles; at most "
                f"{_MOST_TILES} are possible"
            )

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "uint8":
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8; fn.cast converts others")
        channels = x.extent("C")
        SampleErrors.where(
            (channels != 1) & (channels != 3),
            lambda i: f"1 or 3 channels needed, got {channels[i]} (shape {x.shape[i].tolist()}, {x.layout})",
        )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        forward, backward = _lab.matrices()
        return {
            "tables": _lab.tables(),
            "forward": forward[None],
            "backward": backward[None],
            "tiles": np.array([[a.tiles_y, a.tiles_x]], "i4"),
            "clip_limit": a.clip_limit,
            "luma": a.luma_only,
        }
