# SPDX-License-Identifier: Apache-2.0
"""Bounding boxes that follow the rotation of their image."""

from __future__ import annotations

import numpy as np

from ...core import each_sample
from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample
from ._boxes import check_boxes, check_labels

_MODES = ("expand", "halfway", "fixed")  # in the order of kernels/bbox/bbox_rotate.h
_GIVEN = 2  # what is neither the enclosing size nor keep_size


class BBoxRotate(Operator):
    """Moves bounding boxes to where `rotate` with the same `angle`, `size` and `keep_size` moves what they enclose.

    Takes boxes, float32 (boxes, 4), and optionally their labels, int32 (boxes,) or (boxes, 1). The rotated box is
    upright again: in the mode "expand" the smallest that encloses the turned one, in the mode "fixed" of the size it
    had before (width and height change places where it is nearer to lying than to standing as before), in the mode
    "halfway" in the middle between both. It is cut to the output image; boxes of which a share
    less than `remove_threshold` is left, or that have no area, are removed, with their labels. Outputs are the
    remaining boxes, in the form of the input, and their labels.

    `input_shape` is the image's before the rotation: `image.shape()` will do.

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
    frames = False
    angle = PerSample(float, doc="Degrees, counter-clockwise as seen on the image.")
    input_shape = PerSample([int], doc="Shape of the image before the rotation, in the order of `shape_layout`.")
    shape_layout = Arg(Layout, "HW", "What the numbers of `input_shape` are; only H and W matter.")
    bbox_layout = Arg(Layout, "xyXY", 'Form of the boxes: "xyXY", or "xyWH" with width and height.')
    bbox_normalized = Arg(bool, True, "Whether boxes are relative to the image, in [0, 1], instead of in pixels.")
    keep_size = Arg(bool, False, "Whether the rotated image is as large as the input.")
    mode = Arg(str, "expand", 'Size of the rotated boxes: "expand", "halfway" or "fixed".')
    remove_threshold = Arg(float, 0.1, "Boxes of which a share less than that is left are removed; in [0, 1).")
    size = PerSample([float], [], "Height and width of the rotated image, if given to `rotate`.")

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
        if v["keep_size"] and "size" in v["given"]:
            raise ValueError("give either `keep_size` or `size`, not both")

    def n_outputs(self) -> int:
        return max(self.n_inputs, 1)

    def run(self, a: Arguments, boxes: Batch, labels: Batch | None = None) -> Batch | tuple[Batch, ...]:
        check_boxes(boxes.spec)
        n_boxes = boxes.spec.shape[:, 0]
        outs = [Batch.allocate(boxes.spec.like(layout="")), Batch.allocate(Spec.uniform(a.n, (1,), np.dtype("i8")))]
        ins = [boxes]
        if labels is not None:
            check_labels(labels.spec, n_boxes)
            bad = labels.spec.volumes() != n_boxes
            SampleErrors.where(
                bad,
                lambda i: f"labels must have the shape (boxes,) or (boxes, 1), got {labels.spec.shape[i].tolist()}",
            )
            outs.append(Batch.allocate(labels.spec.like(layout="")))
            ins.append(labels)
        columns = self._columns(a)
        each_sample.run(a, "bbox/bbox_rotate", {**columns, "has_labels": labels is not None}, outs, ins)
        counts = outs[1].array().ravel()
        kept = [each_sample.beginnings(out, counts) for out in outs[::2]]
        return tuple(kept) if labels is not None else kept[0]

    def _columns(self, a: Arguments) -> dict[str, object]:
        v = self.values
        layout = v["shape_layout"]
        if a.input_shape.shape[1] < len(layout):
            raise ValueError(f"input_shape has {a.input_shape.shape[1]} numbers for the shape_layout {layout!r}")
        size = a.size if a.size is not None and a.size.shape[1] else None
        if size is not None:
            if size.shape[1] != 2:
                raise ValueError(f"size takes two numbers, height and width; got {size.shape[1]}")
            bad = ~(np.floor(size + 0.5) > 0).all(axis=1)
            SampleErrors.where(bad, lambda i: f"size must be positive, got {size[i].tolist()}")
        height, width = layout.index("H"), layout.index("W")
        return {
            "angle": a.angle,
            "extent": a.input_shape[:, [width, height]],
            "canvas": _GIVEN if size is not None else v["keep_size"],
            "size": 0 if size is None else size,
            "threshold": v["remove_threshold"],
            "sizes": v["bbox_layout"] == "xyWH",
            "normalized": v["bbox_normalized"],
            "mode": _MODES.index(v["mode"]),
        }
