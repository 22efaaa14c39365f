# SPDX-License-Identifier: Apache-2.0
"""Resizes, crops and mirrors in one pass, computing only the window."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIInterpType
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample
from ._resampling import IMAGES, VOLUMES, Resampling, spatial
from ._resize_size import ResizeSize


class ResizeCropMirror(ResizeSize, Resampling):
    """Resizes as `resize` does, crops a window from the result and flips it. Only the window is computed.

    The size of the window is `crop` or `crop_w`, `crop_h`, `crop_d`, truncated to integers; 0 or less keeps the extent.
    Its position along an axis is `crop_pos * (extent - size of the window)`. If the window is larger than the image,
    the border is repeated. Input: HWC, CHW, volumes DHWC, CDHW and sequences of them, of the types of `resize`.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((40, 60, 3), 7, np.uint8), layout="HWC")
    ...     return fn.resize_crop_mirror(x, resize_shorter=20, crop=(16, 16), mirror=1)
    >>> pipe().run()[0].at(0).shape
    (16, 16, 3)
    """

    layouts = IMAGES + VOLUMES
    deprecated = ("FastResizeCropMirror",)
    former_defaults = {"FastResizeCropMirror": {"antialias": False}}
    crop = PerSample(
        [float], None, "Size of the window, in the order of the layout: (height, width) or (depth, height, width)."
    )
    crop_d = PerSample(float, 0.0, "Depth of the window in voxels, instead of `crop`.")
    crop_h = PerSample(float, 0.0, "Height of the window in pixels, instead of `crop`. Requires `crop_w`.")
    crop_w = PerSample(float, 0.0, "Width of the window in pixels, instead of `crop`. Requires `crop_h`.")
    crop_pos_x = PerSample(float, 0.5, "Horizontal position of the window: 0 at the left border, 1 at the right.")
    crop_pos_y = PerSample(float, 0.5, "Vertical position of the window: 0 at the top, 1 at the bottom.")
    crop_pos_z = PerSample(float, 0.5, "Position of the window along the depth: 0 at the front, 1 at the back.")
    mirror = PerSample(int, 0, "Sum of the axes to flip: 1 the width, 2 the height, 4 the depth.")
    rounding = Arg(
        str, "round", 'Rounding of the position: "round" (to the nearest, halves away from zero) or "truncate".'
    )

    def setup(self) -> None:
        super().setup()
        given = self.given
        if ("crop_w" in given) != ("crop_h" in given) or ("crop_d" in given and "crop_w" not in given):
            raise ValueError("crop_w and crop_h (and crop_d for volumes) must be given together")
        if "crop" in given and "crop_w" in given:
            raise ValueError("crop and crop_w, crop_h are mutually exclusive")
        if self.values["rounding"] not in ("round", "truncate"):
            raise ValueError(f'rounding must be "round" or "truncate", got {self.values["rounding"]!r}')

    def plan(self, a: Arguments, x: Spec) -> None:
        self.check_types(a, x)
        self.plan_size(a, x)
        k = a.size.shape[1]
        axes = [("z", a.crop_pos_z, a.crop_d, 4), ("y", a.crop_pos_y, a.crop_h, 2), ("x", a.crop_pos_x, a.crop_w, 1)][
            -k:
        ]
        wanted = np.stack([c for _, _, c, _ in axes], axis=1)
        if a.crop is not None:
            if a.crop.shape[1] not in (2, 3):
                raise ValueError(
                    f"`crop` takes (height, width) or (depth, height, width), got {a.crop.shape[1]} values"
                )
            wanted = np.pad(a.crop, ((0, 0), (1, 0)))[:, -k:]  # two values keep the depth
        window = wanted.astype("i8")  # truncates
        a.window = np.where((window <= 0) | (a.size == 0), a.size, window)
        position = np.stack([p for _, p, _, _ in axes], axis=1)
        SampleErrors.where(
            ~((position >= 0) & (position <= 1)).all(axis=1),
            lambda i: f"crop_pos must be in [0, 1], got {position[i].tolist()} (in the order of the layout)",
        )
        place = position.astype("f8") * (a.size - a.window)
        place = np.trunc(place if a.rounding == "truncate" else place + np.copysign(0.5, place))
        mirrored = (a.mirror[:, None] & np.array([bit for *_, bit in axes])) != 0
        if a.rule == "dali":
            # As in DALI, the window is a region of the input. Which pixels are nearest depends on its rounding.
            extent = a.end - a.start
            is_nearest = (a.min == DALIInterpType.INTERP_NN) & (a.mag == DALIInterpType.INTERP_NN)
            extent = np.where(is_nearest[:, None], extent.astype("f4"), extent)
            begin, step = a.start, extent / np.maximum(a.size, 1)
            a.start, a.end = begin + place * step, begin + (place + a.window) * step
            a.size, place = a.window, place * 0
        # A mirrored axis resizes the mirrored region, so the window's distance is measured from the other end.
        a.start, a.end = np.where(mirrored, a.end, a.start), np.where(mirrored, a.start, a.end)
        a.place = np.where(mirrored, a.size - a.window - place, place).astype("i8")

    def outputs(self, a: Arguments, x: Spec) -> Spec | tuple[Spec, ...]:
        shape = x.shape.copy()
        shape[:, spatial(x)] = a.window
        return x.like(shape=shape, dtype=a.dtype)

    def origin(self, a: Arguments, out: Spec) -> np.ndarray:
        return out.origin[:, spatial(out)] + a.place
