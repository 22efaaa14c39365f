# SPDX-License-Identifier: Apache-2.0
"""Mirrored bounding boxes."""

from typing import Any

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample


class BbFlip(Operator):
    """Flips bounding boxes in the same way as `flip` flips their image.

    Boxes are float32 with four numbers each, usually of shape (boxes, 4): (x, y, width, height), or (left, top, right,
    bottom) with `ltrb`, relative to the image: 0 is its left or upper border, 1 its right or lower one. The output has
    the same shape.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     boxes = types.Constant(np.float32([[0.125, 0.25, 0.5, 0.25]]))
    ...     return fn.bb_flip(boxes), fn.bb_flip(boxes, ltrb=True, horizontal=0, vertical=1)
    >>> [x.at(0).tolist() for x in pipe().run()]
    [[[0.375, 0.25, 0.5, 0.25]], [[0.125, 0.75, 0.5, 0.75]]]
    """

    kernel = "bbox/bb_flip"
    by_frame = False
    horizontal = PerSample(int, 1, "Whether to flip left and right; 0 or 1.")
    vertical = PerSample(int, 0, "Whether to flip top and bottom; 0 or 1.")
    ltrb = Arg(bool, False, "Whether boxes are (left, top, right, bottom) instead of (x, y, width, height).")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "float32":
            raise ValueError(f"boxes must be float32, got {x.dtype.name}; fn.cast them")
        bad = x.volumes() % 4 != 0
        SampleErrors.where(bad, lambda i: f"boxes have four numbers each; got the shape {x.shape[i].tolist()}")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"horizontal": a.horizontal, "vertical": a.vertical, "ltrb": self.values["ltrb"]}
