# SPDX-License-Identifier: Apache-2.0
"""Bounding boxes that follow the rotation of their image."""

from __future__ import annotations

import numpy as np

from ...core import each_sample
from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample
from ._boxes import check_boxes, check_labels

_MODES = ("expand", "halfway", "fixed")  # in the order of kernels/bbox/bbox_rotate.h
_SLACK = 1e-2  # as in fn.rotate


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
        outs = [Batch.allocate(boxes.spec.like(layout="")), Batch.from_array(np.zeros((a.n, 1), "i8"))]
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
        counts = outs[1].array()[:, 0]
        kept = [each_sample.beginnings(out, counts) for out in outs[::2]]
        return tuple(kept) if labels is not None else kept[0]

    def _columns(self, a: Arguments) -> dict[str, object]:
        v = self.values
        layout = v["shape_layout"]
        if a.input_shape.shape[1] < len(layout):
            raise ValueError(f"input_shape has {a.input_shape.shape[1]} numbers for the shape_layout {layout!r}")
        extent = a.input_shape[:, [layout.index("W"), layout.index("H")]].astype("f8")
        # As fn.rotate does it, so that both agree about which of two sides contributes more at 45 degrees.
        radians = (a.angle.astype("f4") * np.float32(np.pi / 180)).astype("f8")
        with np.errstate(invalid="ignore"):
            cosine, sine = np.cos(radians), np.sin(radians)
        if a.size is not None and a.size.shape[1]:
            if a.size.shape[1] != 2:
                raise ValueError(f"size takes two numbers, height and width; got {a.size.shape[1]}")
            canvas = np.floor(a.size[:, ::-1].astype("f8") + 0.5)
            bad = ~(canvas > 0).all(axis=1)
            SampleErrors.where(bad, lambda i: f"size must be positive, got {a.size[i].tolist()}")
        elif v["keep_size"]:
            canvas = extent
        else:
            canvas = _enclosing(np.abs(cosine), np.abs(sine), extent)
        return {
            "cosine": cosine,
            "sine": sine,
            "extent": extent,
            "canvas": canvas,
            "threshold": v["remove_threshold"],
            "sizes": v["bbox_layout"] == "xyWH",
            "normalized": v["bbox_normalized"],
            "mode": _MODES.index(v["mode"]),
        }


def _enclosing(cosine: np.ndarray, sine: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """Width and height (n, 2) of the image that `rotate` makes of one of `extent` (n, 2)."""
    reach = cosine[:, None] * extent + sine[:, None] * extent[:, ::-1]
    canvas = np.ceil(np.nan_to_num(reach) - _SLACK)
    odd = np.where((cosine >= sine)[:, None], extent, extent[:, ::-1]) % 2
    return canvas + (canvas - odd) % 2
