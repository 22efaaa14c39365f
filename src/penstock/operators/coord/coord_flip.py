# SPDX-License-Identifier: Apache-2.0
"""Mirrored points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample

_AXES = "xyz"


class CoordFlip(Operator):
    """Flips points, such as landmarks, in the same way as `flip` flips their image: `x' = 2 * center_x - x`.

    Input: float32 (points, d) with d = 1, 2 or 3 coordinates; the output has the same shape. With the default centres,
    coordinates are relative to the image, from 0 to 1. NaN, for example of a hidden point, stays NaN.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     points = types.Constant(np.float32([[0.25, 0.5], [1.0, 0.125]]))
    ...     return fn.coord_flip(points), fn.coord_flip(points, flip_x=0, flip_y=1)
    >>> [out.at(0).tolist() for out in pipe().run()]
    [[[0.75, 0.5], [0.0, 0.125]], [[0.25, 0.5], [1.0, 0.875]]]
    """

    kernel = "coord/coord_flip"
    by_frame = False
    layout = Arg(Layout, "", 'Order of the coordinates "x", "y" and "z". By default "x", "xy" or "xyz".')
    flip_x = PerSample(int, 1, "Whether to flip x; 0 or 1.")
    flip_y = PerSample(int, 0, "Whether to flip y; 0 or 1.")
    flip_z = PerSample(int, 0, "Whether to flip z; 0 or 1.")
    center_x = PerSample(float, 0.5, "The x about which points are flipped.")
    center_y = PerSample(float, 0.5, "The y about which points are flipped.")
    center_z = PerSample(float, 0.5, "The z about which points are flipped.")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "float32":
            raise ValueError(f"points must be float32, got {x.dtype.name}; fn.cast them")
        if x.ndim != 2:
            raise ValueError(f"points need the shape (points, d), got {x.ndim} dimensions")
        dims = x.shape[:, 1]
        SampleErrors.where(
            (dims < 1) | (dims > 3), lambda i: f"points have 1 to 3 coordinates, got the shape {x.shape[i].tolist()}"
        )
        order = self.values["layout"] or _AXES
        most = int(dims.max(initial=1))
        missing = [c for c in _AXES[:most] if c not in order[:most]]
        if missing:
            raise ValueError(
                f"layout='{order}' does not say which of the {most} coordinates is '{missing[0]}'; it needs "
                f"'{_AXES[:most]}' in some order"
            )
        signs, offsets = [], []
        for name in order[:most]:
            flips, center = getattr(a, f"flip_{name}") != 0, getattr(a, f"center_{name}")
            SampleErrors.where(
                flips & ~np.isfinite(center), lambda i, c=center, n=name: f"center_{n} must be finite, got {c[i]:g}"
            )
            signs.append(np.where(flips, np.float32(-1), np.float32(1)))
            offsets.append(np.where(flips, 2 * center, np.float32(-0.0)))
        a.sign, a.offset = np.stack(signs, axis=1), np.stack(offsets, axis=1)

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"sign": a.sign, "offset": a.offset}
