# SPDX-License-Identifier: Apache-2.0
"""Fills random ranges of an axis, as in SpecAugment."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerSample, Pointwise, Seeded


class Mask(Seeded, Pointwise, abstract=True):
    """Base of `time_mask` and `freq_mask`, which differ in the axis and in the maximum width."""

    traced = False
    module = "audio"
    kernel = "geometry/erase"
    by_frame = False
    along: ClassVar[str]  # the axis, by its name in layouts

    max_width = PerSample(int, doc="Maximum width of a mask, in elements of the axis. With 0 nothing is masked.")
    num_masks = Arg(int, 1, "Number of masks. They may overlap.")
    fill_value = PerSample(float, 0.0, "Value of masked elements; truncated and clamped for integer types.")

    def setup(self) -> None:
        if self.values["num_masks"] < 0:
            raise ValueError(f"{self.display_name()}: num_masks takes 0 or more; got {self.values['num_masks']}")

    def widest(self, a: Arguments, extent: np.ndarray) -> np.ndarray:
        """Maximum widths (n,) for axes of `extent` (n,) elements."""
        return np.minimum(a.max_width.astype("i8"), extent)

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.kind not in "iuf" or x.dtype.itemsize == 8 and x.dtype.kind == "f":
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: integers, float16, float32; fn.cast converts"
            )
        layout = x.layout or {1: "t", 2: "ft"}.get(x.ndim, "")
        if self.along not in layout:
            raise ValueError(
                f"the input has the layout '{x.layout}' and {x.ndim} dimensions; it needs an axis '{self.along}', as "
                "'ft', 'tf' or 't' have"
            )
        SampleErrors.where(a.max_width < 0, lambda i: f"max_width {a.max_width[i]} is negative")
        axis, masks = layout.index(self.along), self.values["num_masks"]
        extent = x.shape[:, axis]
        u = a.random.uniform(2 * masks) if masks else np.zeros((x.n, 0))
        width = np.floor(u[:, :masks] * (self.widest(a, extent) + 1)[:, None]).astype("i8")
        start = np.floor(u[:, masks:] * (extent[:, None] - width + 1)).astype("i8")
        a.begin = a.native.zeros((x.n, masks, x.ndim), "i8")
        a.end = np.repeat(x.shape[:, None, :], masks, axis=1)
        a.begin[:, :, axis], a.end[:, :, axis] = start, start + width

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        origin, masks = out.origin[:, None, :], self.values["num_masks"]
        none = a.native.zeros((x.n, 1), "i8")
        return {
            "begin": (a.begin - origin).reshape(x.n, -1) if masks else none,
            "end": (a.end - origin).reshape(x.n, -1) if masks else none,
            "regions": masks,
            "fill": a.fill_value.astype("f4")[:, None],
            "channels": -1,
        }
