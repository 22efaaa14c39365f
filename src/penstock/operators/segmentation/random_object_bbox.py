# SPDX-License-Identifier: Apache-2.0
"""Bounding boxes of random objects in masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.draws import draws
from ...core.errors import SampleErrors, listed
from ...core.kernels import MAX_DIMS
from ...core.op import Arg, Arguments, PerSample, Seeded

_FORMATS = ("anchor_shape", "start_end", "box")  # in the order of kernels/segmentation/random_object_bbox.h
_TYPES = ("bool", "uint8", "uint16", "uint32", "int8", "int16", "int32")


class RandomObjectBBox(Seeded):
    """Selects a random object of a label mask and returns its bounding box.

    An object is a connected component of elements with the same label; elements are connected through faces, not
    diagonally. First a class that has objects of at least `threshold` is selected, then one of its objects, all with
    equal probability. If there is none, and with the probability `1 - foreground_prob`, the result is the whole mask.

    Input: masks of any number of dimensions, of integers up to 32 bits or bool. Outputs are int32, with one number per
    axis, in the order of the axes: the box's lowest corner and its extents, or as set by `format`; then, with
    `output_class`, the object's label, or that of the background.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     mask = types.Constant(np.uint8([[0, 0, 0, 5], [0, 2, 2, 0], [0, 2, 0, 0]]))
    ...     return fn.segmentation.random_object_bbox(mask, threshold=2, output_class=True)
    >>> [x.at(0).tolist() for x in pipe().run()]
    [[1, 1], [2, 2], 2]
    """

    traced = False
    module = "segmentation"
    kernel = "segmentation/random_object_bbox"
    by_frame = False
    background = PerSample(
        int, 0, "Label of the background. By default 0, or, if that is one of `classes`, one less than the smallest."
    )
    classes = PerSample([int], None, "Labels of objects. By default all but the background.", ragged=True)
    class_weights = PerSample(
        [float],
        None,
        "Relative probability of each of `classes`. Without `classes`, the weights are those of the smallest labels "
        "from 0, without the background.",
        ragged=True,
    )
    foreground_prob = PerSample(
        float, 1.0, "Probability of choosing an object; below 0 is the same as 0, above 1 as 1."
    )
    threshold = PerSample([int], None, "Minimum extents of a box along each axis, or one number for all.")
    k_largest = Arg(
        int,
        None,
        "Selects from this many largest boxes only, of the class or, with `ignore_class`, of all. By default there is "
        "no limit.",
    )
    ignore_class = Arg(bool, False, "Whether all objects are equally likely, regardless of their class.")
    format = Arg(
        str, "anchor_shape", '"anchor_shape", "start_end" (two corners) or "box" (one output with both corners).'
    )
    output_class = Arg(bool, False, "Whether to also return the label.")
    cache_objects = Arg(
        bool,
        False,
        "Accepted for compatibility; finding objects takes hardly longer than a look-up would.",
        hidden=True,
    )

    def setup(self) -> None:
        v = self.values
        if v["format"] not in _FORMATS:
            raise ValueError(f"format takes {', '.join(map(repr, _FORMATS))}; got {v['format']!r}")
        if v["k_largest"] is not None and v["k_largest"] < 1:
            raise ValueError(f"k_largest must be at least 1, got {v['k_largest']}")
        if v["ignore_class"] and (v["output_class"] or {"classes", "class_weights"} & self.given):
            raise ValueError("ignore_class can't be combined with classes, class_weights or output_class")

    def n_outputs(self) -> int:
        return (1 if self.values["format"] == "box" else 2) + bool(self.values["output_class"])

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in _TYPES:
            raise ValueError(f"a mask must be of one of the types {', '.join(_TYPES)}; got {x.dtype.name}")
        if not 1 <= x.ndim <= MAX_DIMS:
            raise ValueError(f"a mask must have 1 to {MAX_DIMS} dimensions, got {x.ndim}")
        if a.threshold is not None and a.threshold.shape[1] not in (1, x.ndim):
            raise ValueError(
                f"threshold takes one number, or one for each of {x.ndim} axes; got {a.threshold.shape[1]}"
            )
        weights = a.class_weights
        if weights is not None:
            bad = ~(np.isfinite(weights) & (weights >= 0)).all(axis=1)
            SampleErrors.where(bad, lambda i: f"class_weights are finite numbers from 0 on, got {listed(weights[i])}")
        a.labels, a.other = a.classes, a.background
        a.n_labels = np.zeros(a.n, "i8")
        if a.classes is None:
            if weights is not None:
                a.n_labels = a.lengths("class_weights")
                a.labels = np.arange(weights.shape[1], dtype="i4") + np.zeros((a.n, 1), "i4")
                a.labels += (a.other[:, None] >= 0) & (a.labels >= a.other[:, None])
            return
        a.n_labels = a.lengths("classes")
        if weights is not None:
            n_weights = a.lengths("class_weights")
            SampleErrors.where(
                n_weights != a.n_labels,
                lambda i: f"there are {n_weights[i]} class_weights for {a.n_labels[i]} classes",
            )
        is_class = np.arange(a.classes.shape[1]) < a.n_labels[:, None]
        if "background" in a.given:
            same = (is_class & (a.classes == a.other[:, None])).any(axis=1)
            SampleErrors.where(same, lambda i: f"the background label {a.other[i]} is one of the classes")
        else:
            least = np.where(is_class, a.classes, np.iinfo("i4").max).min(axis=1, initial=np.iinfo("i4").max)
            a.other = np.where((is_class & (a.classes == 0)).any(axis=1), least - 1, 0)

    def outputs(self, a: Arguments, x: Spec) -> tuple[Spec, ...]:
        box = self.values["format"] == "box"
        corner = Spec.uniform(x.n, (x.ndim * (1 + box),), np.dtype("i4"))
        label = Spec.uniform(x.n, (), np.dtype("i4"))
        return (corner,) * (1 if box else 2) + (label,) * bool(self.values["output_class"])

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        v = self.values
        columns = {
            **draws(a),
            "foreground_prob": a.foreground_prob,
            "background": a.other,
            "has_classes": a.labels is not None,
            "ignore_class": v["ignore_class"],
            "k_largest": v["k_largest"] or 0,
            "format": _FORMATS.index(v["format"]),
            "output_class": v["output_class"],
        }
        for name, count, values in (
            ("classes", "n_classes", a.labels),
            ("weights", None, a.class_weights),
            ("threshold", "n_threshold", a.threshold),
        ):
            if values is not None and values.shape[1]:
                columns[name] = values
                if count:
                    columns[count] = a.n_labels if values is a.labels else values.shape[1]
        return columns
