# SPDX-License-Identifier: Apache-2.0
"""Rotates bounding boxes with their image."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample
from ._boxes import check_boxes, check_labels

_MODES = ("expand", "halfway", "fixed")  # in the order of kernels/bbox/bbox_rotate.h
_GIVEN = 2  # size given; neither enclosing nor keep_size


class BBoxRotate(Operator):
    """Rotates bounding boxes in the same way as `rotate` with the same `angle`, `size` and `keep_size` rotates their
    image.

    Inputs: boxes, float32 (boxes, 4), and optionally their labels, int32 (boxes,) or (boxes, 1). The output boxes are
    axis-aligned again. Their size depends on `mode`. "expand": the smallest box that encloses the rotated one. "fixed":
    the size before the rotation, with width and height swapped if the rotation turns a wide box into a tall one or vice
    versa. "halfway": the mean of both. Boxes are then cut to the output image. Boxes of which less than
    `remove_threshold` is left, or that have no area, are removed together with their labels. Outputs: the remaining
    boxes, in the form of the input, and their labels.

    `input_shape` is the shape of the image before the rotation, such as `image.shape()`.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     boxes = types.Constant(np.float32([[0.0, 0.0, 0.5, 0.25]]))
    ...     return fn.bbox_rotate(boxes, angle=90, input_shape=[100, 200])
    >>> pipe().run()[0].at(0).round(3).tolist()
    [[0.0, 0.5, 0.25, 1.0]]
    """

    inputs = (1, 2)
    by_frame = False
    kernel = "bbox/bbox_rotate"
    shortens = 0
    angle = PerSample(float, doc="Angle in degrees, counter-clockwise.")
    input_shape = PerSample([int], doc="Shape of the image before the rotation, in the order of `shape_layout`.")
    shape_layout = Arg(Layout, "HW", "Meaning of the numbers of `input_shape`; only H and W are used.")
    bbox_layout = Arg(Layout, "xyXY", 'Form of the boxes: "xyXY", or "xyWH" with width and height.')
    bbox_normalized = Arg(bool, True, "Whether boxes are relative to the image, in [0, 1], or in pixels.")
    keep_size = Arg(bool, False, "Whether the rotated image has the size of the input.")
    mode = Arg(str, "expand", 'How the size of boxes is computed: "expand", "halfway" or "fixed".')
    remove_threshold = Arg(float, 0.1, "Boxes of which a smaller share is left are removed; in [0, 1).")
    size = PerSample([float], [], "Height and width of the rotated image, if they are given to `rotate`.")

    def setup(self) -> None:
        v = self.values
        if v["mode"] not in _MODES:
            raise ValueError(f"mode takes {', '.join(map(repr, _MODES))}; got {v['mode']!r}")
        if v["bbox_layout"] not in ("xyXY", "xyWH"):
            raise ValueError(f"bbox_layout takes 'xyXY' or 'xyWH', got {v['bbox_layout']!r}")
        if not 0 <= v["remove_threshold"] < 1:
            raise ValueError(f"remove_threshold must be in [0, 1), got {v['remove_threshold']}")
        layout = v["shape_layout"]
        if layout.count("H") != 1 or layout.count("W") != 1:
            raise ValueError(f"shape_layout must have one H and one W, got {layout!r}")
        if v["keep_size"] and "size" in self.given:
            raise ValueError("give either `keep_size` or `size`, not both")

    def n_outputs(self) -> int:
        return max(self.n_inputs, 1)

    def plan(self, a: Arguments, boxes: Spec, labels: Spec | None = None) -> None:
        v = self.values
        check_boxes(boxes)
        if labels is not None:
            n_boxes = boxes.shape[:, 0]
            check_labels(labels, n_boxes)
            SampleErrors.where(
                labels.volumes() != n_boxes,
                lambda i: f"labels must have the shape (boxes,) or (boxes, 1), got {labels.shape[i].tolist()}",
            )
        if a.input_shape.shape[1] < len(v["shape_layout"]):
            raise ValueError(
                f"input_shape has {a.input_shape.shape[1]} numbers for the shape_layout {v['shape_layout']!r}"
            )
        if self._is_sized(a):
            if a.size.shape[1] != 2:
                raise ValueError(f"size takes two numbers, height and width; got {a.size.shape[1]}")
            bad = ~(np.floor(a.size + 0.5) > 0).all(axis=1)
            SampleErrors.where(bad, lambda i: f"size must be positive, got {a.size[i].tolist()}")

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        """Maximum shapes of the outputs."""
        boxes, *labels = inputs
        rows = boxes.shape.copy()
        rows[:, 1] = 4  # also of samples without boxes, whose rows may have any length
        return (boxes.like(shape=rows, layout=""), *(x.like(layout="") for x in labels))

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        v = self.values
        sized = self._is_sized(a)
        height, width = (v["shape_layout"].index(c) for c in "HW")
        return {
            "angle": a.angle,
            "extent": a.input_shape[:, [width, height]],
            "canvas": _GIVEN if sized else v["keep_size"],
            "size": a.size if sized else 0,
            "threshold": v["remove_threshold"],
            "sizes": v["bbox_layout"] == "xyWH",
            "normalized": v["bbox_normalized"],
            "mode": _MODES.index(v["mode"]),
            "has_labels": self.n_inputs > 1,
        }

    @staticmethod
    def _is_sized(a: Arguments) -> bool:
        return a.size is not None and a.size.shape[1] > 0
