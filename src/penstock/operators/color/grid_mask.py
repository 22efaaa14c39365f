# SPDX-License-Identifier: Apache-2.0
"""Masks squares on a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample, Pointwise

_TYPES = ("uint8", "int16", "int32", "float32")


class GridMask(Pointwise):
    """Sets squares on a regular grid to zero (Chen et al.: GridMask Data Augmentation, 2020).

    The image is divided into tiles of `tile` x `tile` pixels; the grid is rotated by `angle` and shifted. In each tile,
    a square of `ratio * tile` pixels a side at its beginning is set to zero. Input: images (HWC, HW, CHW) or sequences
    of them, of type uint8, int16, int32 or float32. Without a layout, the first two axes are height and width.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.ones((4, 6, 1), np.uint8), layout="HWC")
    ...     return fn.grid_mask(x, tile=3, ratio=0.6)
    >>> print(pipe().run()[0].at(0)[..., 0])
    [[0 0 1 0 0 1]
     [0 0 1 0 0 1]
     [1 1 1 1 1 1]
     [0 0 1 0 0 1]]
    """

    kernel = "color/grid_mask"
    tile = PerSample(int, 100, "Side of a tile in pixels.")
    ratio = PerSample(
        float,
        0.5,
        "Side of a square divided by the side of its tile, in [0, 1]. Above 1 is the same as 1: all is zero. Negative "
        "numbers are an error; DALI takes them for 0.",
    )
    angle = PerSample(float, 0.0, "Angle by which the grid is rotated, in radians.")
    shift_x = PerSample(float, 0.0, "Shift of the grid along its rows, in pixels.")
    shift_y = PerSample(float, 0.0, "Shift of the grid along its columns, in pixels.")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in _TYPES:
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: {', '.join(_TYPES)}; fn.cast converts others"
            )
        if x.ndim < 2:
            raise ValueError(f"an image has height and width; got an input of {x.ndim} dimensions")
        if x.layout and "HW" not in x.layout:
            raise ValueError(f"the layout '{x.layout}' has no height and width (HW)")
        SampleErrors.where(~(a.tile > 0), lambda i: f"`tile` must be positive; got {a.tile[i]}")
        SampleErrors.where(~(a.ratio >= 0), lambda i: f"`ratio` can't be negative; it is in [0, 1]; got {a.ratio[i]:g}")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        y = max(x.axis("H"), 0)
        per_pixel = np.float32(1) / a.tile.astype("f4")
        angle = a.angle.astype("f4")
        return {
            "cosine": np.cos(angle) * per_pixel,
            "sine": np.sin(angle) * per_pixel,
            "left": a.shift_x * per_pixel,
            "top": a.shift_y * per_pixel,
            "ratio": a.ratio,
            "first_y": out.origin[:, y],
            "first_x": out.origin[:, y + 1],
            "y_axis": y,
            "x_axis": y + 1,
        }
