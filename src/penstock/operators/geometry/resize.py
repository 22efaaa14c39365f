# SPDX-License-Identifier: Apache-2.0
"""Resizes images, volumes and sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments
from ._resampling import IMAGES, VOLUMES, Resampling, spatial
from ._resize_size import ResizeSize


class Resize(ResizeSize, Resampling):
    """Resizes images (HWC, CHW), volumes (DHWC, CDHW) and sequences of them, separably along each spatial axis.

    The size is given by `size`, by `resize_x`, `resize_y`, `resize_z`, or by `resize_shorter` or `resize_longer`, and
    is rounded to whole pixels, at least one. Input: uint8, uint16, int16 or float; integers are rounded, halves away
    from zero, and saturated. uint8 is computed in fixed point and may differ by one from the exact result.

    With `save_attrs`, a second output has the extents (k,) of each input along the spatial axes, int32.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((40, 60, 3), 7, np.uint8), layout="HWC")
    ...     return fn.resize(x, resize_shorter=20)
    >>> pipe().run()[0].at(0).shape
    (20, 30, 3)
    """

    layouts = IMAGES + VOLUMES
    save_attrs = Arg(bool, False, "Whether to also return the extents of the input.")
    image_type = Arg(object, None, "Accepted for compatibility.", hidden=True, deprecated="no longer used")

    def setup(self) -> None:
        super().setup()
        if self.values["save_attrs"]:
            self.by_frame = False  # one set of extents for all frames of a sequence

    def n_outputs(self) -> int:
        return 2 if self.values["save_attrs"] else 1

    def plan(self, a: Arguments, x: Spec) -> None:
        self.check_types(a, x)
        self.plan_size(a, x)

    def outputs(self, a: Arguments, x: Spec) -> Spec | tuple[Spec, ...]:
        out = self.resized(a, x)
        if not a.save_attrs:
            return out
        axes = spatial(x)
        return out, Spec.uniform(x.n, (axes.stop - axes.start,), np.dtype("i4"))

    def params(self, a: Arguments, x: Spec, out: Spec, *others: Spec) -> dict[str, Any]:
        return {**super().params(a, x, out), "save_sizes": a.save_attrs}
