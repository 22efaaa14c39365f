# SPDX-License-Identifier: Apache-2.0
"""Pastes an image onto a larger canvas."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample


class Paste(Operator):
    """Pastes an image onto a larger canvas of a constant colour.

    The height and width of the canvas are `ratio` times those of the image, but at least `min_canvas_size`, truncated
    to integers. `paste_x` and `paste_y` set the position of the image. Input: an image (HWC) of type uint8.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((1, 2, 3), 5, np.uint8), layout="HWC")
    ...     return fn.paste(x, ratio=2, fill_value=[7, 8, 9], paste_x=0.0, paste_y=1.0)
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[7, 7, 7, 7], [5, 5, 7, 7]]
    """

    layouts = ("HWC",)
    kernel = "geometry/window"
    windowed = "HW"
    ratio = PerSample(float, doc="Size of the canvas divided by the size of the image; at least 1.")
    fill_value = Arg([int], doc="Colour of the canvas: one value, or one for each channel; clamped to [0, 255].")
    paste_x = PerSample(float, 0.5, "Horizontal position of the image on the canvas, from 0.0 (left) to 1.0 (right).")
    paste_y = PerSample(float, 0.5, "Vertical position of the image on the canvas, from 0.0 (top) to 1.0 (bottom).")
    min_canvas_size = PerSample(float, 0.0, "Minimum height and width of the canvas, in pixels.")
    n_channels = Arg(int, 3, "Number of channels, which is found in the data.", hidden=True)

    def setup(self) -> None:
        if not self.values["fill_value"]:
            raise ValueError("`fill_value` needs one value, or one for each channel")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "uint8":
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8; fn.cast converts others")
        SampleErrors.where(~(a.ratio >= 1), lambda i: f"`ratio` of less than 1 is not supported; got {a.ratio[i]:g}")
        least = a.min_canvas_size
        SampleErrors.where(
            ~(least >= 0), lambda i: f"`min_canvas_size` of less than 0 is not supported; got {least[i]:g}"
        )
        for name in ("paste_x", "paste_y"):
            at = getattr(a, name)
            SampleErrors.where(
                ~((at >= 0) & (at <= 1)), lambda i, n=name, v=at: f"`{n}` must be in range [0, 1]; got {v[i]:g}"
            )
        count, channels = len(self.values["fill_value"]), x.shape[:, 2]
        if count > 1:
            SampleErrors.where(
                channels != count, lambda i: f"`fill_value` has {count} values for {channels[i]} channels"
            )
        size = x.shape[:, :2]
        a.size = np.maximum((a.ratio[:, None] * size).astype("i8"), a.min_canvas_size[:, None].astype("i8"))
        a.at = (np.stack([a.paste_y, a.paste_x], axis=1) * (a.size - size).astype("f4")).astype("i8")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like(shape=np.concatenate([a.size, x.shape[:, 2:]], axis=1), layout="HWC")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        start = a.native.zeros((x.n, 3), "i8")
        start[...] = out.origin
        start[:, :2] -= a.at
        fill = np.array(self.values["fill_value"], "f4")[None]
        return {"start": start, "extent": x.shape, "fill": fill, "channels": 2 if fill.size > 1 else -1}
