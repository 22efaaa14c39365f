# SPDX-License-Identifier: Apache-2.0
"""Bounding boxes of an image that was pasted onto a canvas."""

from __future__ import annotations

from typing import Any

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample


class BBoxPaste(Operator):
    """Moves and scales bounding boxes in the same way as `paste` moves their image.

    Boxes are float32 with four numbers each, usually of shape (boxes, 4): (x, y, width, height), or (left, top, right,
    bottom) with `ltrb`, relative to the image. Output boxes are relative to the canvas and have the same shape.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     boxes = types.Constant(np.float32([[0.25, 0.5, 0.5, 0.25]]))
    ...     return fn.bbox_paste(boxes, ratio=2, paste_x=0.0, paste_y=1.0)
    >>> pipe().run()[0].at(0).tolist()
    [[0.125, 0.75, 0.25, 0.125]]
    """

    kernel = "bbox/bbox_paste"
    by_frame = False
    ratio = PerSample(float, doc="Size of the canvas divided by the size of the image; at least 1.")
    paste_x = PerSample(float, 0.5, "Horizontal position of the image on the canvas, from 0.0 (left) to 1.0 (right).")
    paste_y = PerSample(float, 0.5, "Vertical position of the image on the canvas, from 0.0 (top) to 1.0 (bottom).")
    ltrb = Arg(bool, False, "Whether boxes are (left, top, right, bottom) instead of (x, y, width, height).")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "float32":
            raise ValueError(f"boxes must be float32, got {x.dtype.name}; fn.cast them")
        bad = x.volumes() % 4 != 0
        SampleErrors.where(bad, lambda i: f"boxes have four numbers each; got the shape {x.shape[i].tolist()}")
        SampleErrors.where(~(a.ratio >= 1), lambda i: f"`ratio` of less than 1 is not supported; got {a.ratio[i]:g}")
        for name in ("paste_x", "paste_y"):
            at = getattr(a, name)
            SampleErrors.where(
                ~((at >= 0) & (at <= 1)), lambda i, n=name, v=at: f"`{n}` must be in range [0, 1]; got {v[i]:g}"
            )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        margin = 1 - 1 / a.ratio
        return {
            "ratio": a.ratio,
            "left": a.paste_x * margin,
            "top": a.paste_y * margin,
            "ltrb": self.values["ltrb"],
        }
