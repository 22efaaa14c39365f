# SPDX-License-Identifier: Apache-2.0
"""Random crop windows that contain boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.draws import draws
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, PerSample, Seeded
from ._boxes import check_boxes, check_labels

_ENDLESS = 100_000  # attempts of a search without a limit

_FLOAT32, _INT32 = np.dtype("f4"), np.dtype("i4")
_ONES = {dims: np.ones((1, dims), "f4") for dims in (2, 3)}
for _ones in _ONES.values():
    _ones.setflags(write=False)


class RandomBBoxCrop(Seeded):
    """Selects a random window of an image that contains bounding boxes, and computes the boxes in the window.

    Inputs: boxes, float32 (boxes, 4), or (boxes, 6) for volumes, relative to the image, in [0, 1]; and optionally their
    labels, int32, one each. Outputs: the anchor and the shape of the window, as arguments for `slice`; the boxes that
    are kept, cut to the window and relative to it; their labels; and their indices with `output_bbox_indices`.

    The search follows Liu et al., SSD: Single Shot MultiBox Detector, 2016, section 2.2. One of `thresholds` is chosen,
    or, with `allow_no_crop`, the whole image. Then up to `num_attempts` windows are drawn. A window is accepted if its
    aspect ratio is allowed, all boxes (or any box) overlap it by the threshold, and at least one box would be kept. If
    no window is accepted, another threshold is chosen. After `total_num_attempts` windows, the one with the largest
    overlap is used, or the whole image if none had an allowed aspect ratio. Without boxes, any window is accepted.

    The extents of a window are drawn uniformly from the range `scaling`, as shares of those of the image. If the range
    of aspect ratios is a single value, as it is by default, the longer side is drawn and the other computed. With
    `crop_shape` and `input_shape`, windows have the given size, and anchor and shape are in pixels: pass
    normalized_anchor=False and normalized_shape=False to `slice`.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     boxes = types.Constant(np.float32([[0.25, 0.25, 0.75, 0.75], [0.0, 0.0, 0.01, 0.01]]))
    ...     return fn.random_bbox_crop(boxes, scaling=[0.5, 0.5], thresholds=[0.5], allow_no_crop=False,
    ...                                all_boxes_above_threshold=False, threshold_type="overlap")
    >>> anchor, shape, boxes = pipe().run()
    >>> shape.at(0).tolist(), boxes.at(0).shape
    ([0.5, 0.5], (1, 4))
    """

    inputs = (1, 2)
    by_frame = False
    kernel = "bbox/random_bbox_crop"
    shortens = 2
    all_boxes_above_threshold = Arg(bool, True, "Whether all boxes must overlap the window, or only one of them.")
    allow_no_crop = Arg(bool, True, "Whether the whole image may be chosen, with the probability of one threshold.")
    aspect_ratio = Arg(
        [float],
        [1.0, 1.0],
        "Range of width / height of windows; for volumes one range for all or three, of x/y, x/z and y/z. Relative to "
        "the image's own ratio unless `input_shape` is given.",
    )
    bbox_layout = Arg(
        Layout, None, 'Order of a box\'s numbers: a permutation of "xyXY" (default), "xyWH", "xyzXYZ" or "xyzWHD".'
    )
    bbox_prune_threshold = Arg(
        float,
        None,
        "Minimum share of a box inside the window for it to be kept. By default a box is kept if its centre is inside.",
    )
    crop_shape = PerSample([int], None, "Size of the window in pixels, in the order of `shape_layout`.")
    input_shape = PerSample([int], None, "Size of the image in pixels, in the order of `shape_layout`.")
    ltrb = Arg(bool, True, 'Former equivalent of bbox_layout="xyXY" (True) or "xyWH" (False).')
    num_attempts = Arg(int, 1, "Number of windows drawn before another threshold is chosen.")
    output_bbox_indices = Arg(bool, False, "Whether to also return the indices of the boxes that were kept.")
    quiet = Arg(bool, False, "Accepted for compatibility; a search that finds nothing prints nothing.", hidden=True)
    scaling = Arg([float], [1.0, 1.0], "Range of the window's extents, as shares of the image's.")
    shape_layout = Arg(
        Layout, None, 'Order of the numbers of `crop_shape` and `input_shape`; "WH" or "WHD" by default.'
    )
    threshold_type = Arg(str, "iou", '"iou": intersection over union; "overlap": the share of the box inside.')
    thresholds = Arg([float], [0.0], "Minimum overlaps, in [0, 1], one of which is chosen at random.")
    total_num_attempts = Arg(
        int, -1, f"Maximum number of windows drawn; {_ENDLESS} by default, where DALI does not limit the search."
    )

    def setup(self) -> None:
        v = self.values
        given = self.given
        aspect, scaling, prune = v["aspect_ratio"], v["scaling"], v["bbox_prune_threshold"]
        if len(aspect) not in (2, 6) or not all(0 <= lo <= hi for lo, hi in zip(aspect[::2], aspect[1::2])):
            raise ValueError(f"aspect_ratio takes one or three ranges [smallest, largest], from 0 on; got {aspect}")
        if len(scaling) != 2 or not 0 <= scaling[0] <= scaling[1]:
            raise ValueError(f"scaling takes a range [smallest, largest], from 0 on; got {scaling}")
        if not v["thresholds"] or not all(0 <= t <= 1 for t in v["thresholds"]):
            raise ValueError(f"thresholds takes numbers in [0, 1], at least one; got {v['thresholds']}")
        if v["threshold_type"] not in ("iou", "overlap"):
            raise ValueError(f"threshold_type takes 'iou' or 'overlap', got {v['threshold_type']!r}")
        if prune is not None and not 0 <= prune <= 1:
            raise ValueError(f"bbox_prune_threshold must be in [0, 1], got {prune}")
        if v["num_attempts"] < 1 or "total_num_attempts" in given and v["total_num_attempts"] < 1:
            raise ValueError(
                f"num_attempts and total_num_attempts must be at least 1, got {v['num_attempts']} and "
                f"{v['total_num_attempts']}"
            )
        if {"ltrb", "bbox_layout"} <= given:
            raise ValueError("ltrb is the former way to give a bbox_layout; give the layout only")
        if "crop_shape" in given:
            if "input_shape" not in given:
                raise ValueError("crop_shape also needs the input_shape, the image's size in pixels")
            if given & {"scaling", "aspect_ratio"}:
                raise ValueError("crop_shape sets the size of windows; leave scaling and aspect_ratio out")
        self._check_layouts()
        self._kept: dict[int, dict[str, object]] = {}

    def _check_layouts(self) -> None:
        boxes, shape = self.values["bbox_layout"], self.values["shape_layout"]
        known = ("xyXY", "xyWH", "xyzXYZ", "xyzWHD")
        if boxes is not None and not any(sorted(boxes) == sorted(k) for k in known):
            raise ValueError(f"bbox_layout takes {', '.join(known)}, in any order; got {boxes!r}")
        if shape is not None and sorted(shape) not in (sorted("WH"), sorted("WHD")):
            raise ValueError(f"shape_layout takes WH or WHD, in any order; got {shape!r}")

    def n_outputs(self) -> int:
        return 3 + (self.n_inputs > 1) + bool(self.values["output_bbox_indices"])

    def plan(self, a: Arguments, boxes: Spec, labels: Spec | None = None) -> None:
        a.dims = self._dims(boxes)
        if labels is not None:
            check_labels(labels, boxes.shape[:, 0])
        a.pixels = {
            "input": self._in_pixels(a.input_shape, "input_shape", a.dims),
            "crop": self._in_pixels(a.crop_shape, "crop_shape", a.dims),
        }

    def outputs(self, a: Arguments, boxes: Spec, *labels: Spec) -> tuple[Spec, ...]:
        """Maximum shapes of the outputs."""
        window = Spec(np.full((a.n, 1), a.dims), _FLOAT32)
        along = [x.like(layout="") for x in (boxes, *labels)]
        if self.values["output_bbox_indices"]:
            along.append(Spec(np.stack([boxes.shape[:, 0]], axis=1), _INT32))
        return window, window, *along

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {
            **draws(a),
            **self._columns(a.dims),
            **a.pixels,
            "has_crop": a.crop_shape is not None,
            "has_labels": self.n_inputs > 1,
            "has_indices": self.values["output_bbox_indices"],
        }

    def _dims(self, boxes: Spec) -> int:
        layout = self.values["bbox_layout"]
        check_boxes(boxes, (4, 6) if layout is None else (len(layout),))
        width = len(layout or "xyXY")
        if (boxes.shape[:, 1] == width).all():
            return width // 2
        widths = boxes.shape[boxes.shape[:, 0] > 0, 1]
        if not len(widths):
            widths = boxes.shape[np.isin(boxes.shape[:, 1], (4, 6)), 1]
        first = len(layout) if layout is not None else int(widths[0]) if len(widths) else 4
        if (widths != first).any():
            raise ValueError(f"boxes of one batch must have the same number of coordinates; got {set(widths.tolist())}")
        return first // 2

    def _columns(self, dims: int) -> dict[str, object]:
        """Columns that are the same for every batch. The same arrays are returned, so that cached argument rows can be
        reused."""
        if dims not in self._kept:
            columns = self._make_columns(dims)
            for column in columns.values():
                if isinstance(column, np.ndarray):
                    column.setflags(write=False)
            self._kept[dims] = columns
        return self._kept[dims]

    def _make_columns(self, dims: int) -> dict[str, object]:
        v = self.values
        layout = v["bbox_layout"] or ("xyzXYZ" if dims == 3 else "xyXY" if v["ltrb"] else "xyWH")
        if v["bbox_layout"] is None and dims == 3 and not v["ltrb"]:
            layout = "xyzWHD"
        sizes = "W" in layout
        prune = v["bbox_prune_threshold"]
        total = v["total_num_attempts"]
        return {
            "dims": dims,
            "start": np.array([[layout.index(c) for c in "xyz"[:dims]]]),
            "end": np.array([[layout.index(c) for c in ("WHD" if sizes else "XYZ")[:dims]]]),
            "sizes": sizes,
            "scaling": np.array([v["scaling"]], "f4"),
            "aspect": np.resize(np.array([v["aspect_ratio"]], "f4"), (1, 6)).copy(),
            "thresholds": np.array([v["thresholds"]], "f4"),
            "n_thresholds": len(v["thresholds"]),
            "no_crop": v["allow_no_crop"] and "crop_shape" not in self.given,
            "all_boxes": v["all_boxes_above_threshold"],
            "overlap": v["threshold_type"] == "overlap",
            "attempts": v["num_attempts"],
            "total_attempts": total if total > 0 else _ENDLESS,
            "prune": -1.0 if prune is None else prune,
        }

    def _in_pixels(self, shape: np.ndarray | None, name: str, dims: int) -> np.ndarray:
        """The argument (n, dims) in the order x, y, z; ones if it is not given."""
        if shape is None:
            return _ONES[dims]
        layout = self.values["shape_layout"] or "WHD"[:dims]
        if len(layout) != dims:
            raise ValueError(f"shape_layout {layout!r} does not fit boxes of {dims} dimensions")
        if shape.shape[1] != dims:
            raise ValueError(f"{name} takes {dims} numbers, in the order {layout}; got {shape.shape[1]}")
        ordered = shape[:, [layout.index(c) for c in "WHD"[:dims]]]
        SampleErrors.where((ordered < 1).any(axis=1), lambda i: f"{name} must be positive, got {shape[i].tolist()}")
        return ordered.astype("f4")
