# SPDX-License-Identifier: Apache-2.0
"""Encodes boxes and labels as targets of anchors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator


class BoxEncoder(Operator):
    """Encodes boxes and their labels as targets for anchors (default boxes), for training SSD.

    Inputs: boxes, float32 (boxes, 4), as (left, top, right, bottom), and their labels, int32, one each. Each anchor is
    matched with the box that overlaps it most (intersection over union), if the overlap is larger than `criteria`. In
    addition, each box is matched with the anchor that overlaps it most (Liu et al., SSD: Single Shot MultiBox Detector,
    2016, section 2.2). If several boxes or anchors overlap equally, the last one is used. If several
    boxes overlap the same anchor most, it gets the last of them.

    Outputs: float32 (anchors, 4) and int32 (anchors,). For a matched anchor they are the box as (centre x, centre y,
    width, height) and its label; for other anchors the anchor itself in that form and 0, the background. With `offset`,
    boxes are relative to the anchor: centres are `(box - anchor) / anchor's extent` and extents `log(box / anchor)`;
    then `means` are subtracted, and the differences are divided by `stds`. Anchors without a match are zeros.

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
    anchors = Arg([float], doc="The anchors, flattened, each as (left, top, right, bottom).")
    criteria = Arg(float, 0.5, "Minimum overlap, exclusive, for an anchor to match a box; in [0, 1].")
    offset = Arg(bool, False, "Whether to return boxes relative to their anchors.")
    scale = Arg(float, 1.0, "Factor of boxes and anchors, applied before their difference is computed.")
    means = Arg([float], [0.0, 0.0, 0.0, 0.0], "Values subtracted from the offsets of x, y, width and height.")
    stds = Arg([float], [1.0, 1.0, 1.0, 1.0], "Divisors of the offsets of x, y, width and height.")

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
