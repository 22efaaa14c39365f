# SPDX-License-Identifier: Apache-2.0
"""Boxes and labels as the targets of anchors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator


class BoxEncoder(Operator):
    """Encodes boxes and their labels as targets of anchors (default boxes), as SSD is trained with.

    Inputs are boxes, float32 (boxes, 4), as (left, top, right, bottom), and their labels, int32, one each. Each anchor
    finds the box with which it overlaps most (intersection over union), if that is more than `criteria`; and each box
    is found at least by the anchor that is nearest to it (Liu et al., SSD: Single Shot MultiBox Detector, 2016,
    section 2.2). Of boxes that overlap alike the last one is found, of anchors the last one is nearest.

    Outputs are float32 (anchors, 4) and int32 (anchors,): for anchors that found a box, the box as (centre x, centre y,
    width, height) and its label; for others the anchor itself in that form, and 0, the background. With `offset` the
    box is relative to the anchor: centres as `(box - anchor) / anchor's extent`, extents as `log(box / anchor)`, from
    which `means` are subtracted and which are divided by `stds`; anchors that found nothing have zeros.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     boxes, labels = types.Constant(np.float32([[0, 0, 0.5, 0.5]])), types.Constant(np.int32([7]))
    ...     return fn.box_encoder(boxes, labels, anchors=[0, 0, 0.5, 1, 0.5, 0, 1, 1])
    >>> [x.at(0).tolist() for x in pipe().run()]
    [[[0.25, 0.25, 0.5, 0.5], [0.75, 0.5, 0.5, 1.0]], [7, 0]]
    """

    kernel = "bbox/box_encoder"
    inputs = (2, 2)
    by_frame = False
    anchors = Arg([float], doc="The anchors one after the other, each as (left, top, right, bottom).")
    criteria = Arg(float, 0.5, "An anchor finds a box if they overlap by more than that, in [0, 1].")
    offset = Arg(bool, False, "Whether boxes are given relative to their anchors.")
    scale = Arg(float, 1.0, "Boxes and anchors are multiplied by it before their difference is taken.")
    means = Arg([float], [0.0, 0.0, 0.0, 0.0], "Subtracted from offsets: of x, y, width, height.")
    stds = Arg([float], [1.0, 1.0, 1.0, 1.0], "Offsets are divided by them: of x, y, width, height.")

    def setup(self) -> None:
        v = self.values
        if not v["anchors"] or len(v["anchors"]) % 4:
            raise ValueError(f"anchors takes four numbers for each anchor; got {len(v['anchors'])} numbers")
        if not 0 <= v["criteria"] <= 1:
            raise ValueError(f"criteria must be in [0, 1], got {v['criteria']}")
        for name in ("means", "stds"):
            if len(v[name]) != 4:
                raise ValueError(f"{name} takes four numbers, of x, y, width and height; got {v[name]}")
        if 0 in v["stds"]:
            raise ValueError(f"stds can't be zero, as offsets are divided by them; got {v['stds']}")
        sides = np.array(v["anchors"], "f4").reshape(-1, 4).T
        area = (sides[2] - sides[0]) * (sides[3] - sides[1])
        self._anchors = np.concatenate([sides, area[None]])[None]  # (1, 5, anchors)
        self._anchors.setflags(write=False)
        self._fixed = {
            "n_anchors": sides.shape[1],
            **{k: v[k] for k in ("criteria", "scale", "offset")},
            **{k: np.array([v[k]], "f4") for k in ("means", "stds")},
        }

    def n_outputs(self) -> int:
        return 2

    def plan(self, a: Arguments, boxes: Spec, labels: Spec) -> None:
        for what, x, dtype in (("boxes (input 0)", boxes, "float32"), ("labels (input 1)", labels, "int32")):
            if x.dtype.name != dtype:
                raise ValueError(f"{what} must be {dtype}, got {x.dtype.name}; fn.cast them")
        if boxes.ndim != 2 and boxes.volumes().any():
            raise ValueError(f"boxes must have the shape (boxes, 4), got {boxes.ndim} dimensions")
        shape, counts = boxes.shape, labels.volumes()
        if boxes.ndim == 2:
            bad = (shape[:, 1] != 4) & (shape[:, 0] > 0)
            SampleErrors.where(bad, lambda i: f"boxes must have the shape (boxes, 4), got {shape[i].tolist()}")
        n = boxes.volumes() // 4
        SampleErrors.where(n != counts, lambda i: f"there are {counts[i]} labels for {n[i]} boxes; give one for each")

    def outputs(self, a: Arguments, boxes: Spec, labels: Spec) -> tuple[Spec, Spec]:
        m = self._fixed["n_anchors"]
        return Spec.uniform(boxes.n, (m, 4), np.dtype("f4")), Spec.uniform(boxes.n, (m,), np.dtype("i4"))

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"anchors": self._anchors, **self._fixed}
