# SPDX-License-Identifier: Apache-2.0
"""Crops images, boxes and labels as in the training of SSD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import warn_deprecated
from ...core.op import REGISTRY, Arg, Operator, Seeded


class SSDRandomCrop(Seeded):
    """Crops an image at random around its bounding boxes. Deprecated: use `random_bbox_crop`, which this operator
    calls, and `slice`.

    Inputs: images (height, width, ...); boxes, float32 (boxes, 4), as (left, top, right, bottom) relative to the image;
    and labels, int32, one for each box. Outputs: the window of the image; the boxes whose centre is inside, cut to the
    window and relative to it; and their labels.

    The window is the whole image, or has 30 to 100 % of its extents and an aspect ratio of 1/2 to 2 times the image's,
    and all boxes overlap it by at least a threshold chosen from 0, 0.1, 0.3, 0.5, 0.7 and 0.9 (intersection over union;
    Liu et al., SSD: Single Shot MultiBox Detector, 2016, section 2.2).

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     image = types.Constant(np.zeros((40, 60, 3), np.uint8), layout="HWC")
    ...     boxes, labels = np.float32([[0, 0, 1, 1]]), np.int32([7])
    ...     return fn.ssd_random_crop(image, boxes, labels)
    >>> image, boxes, labels = pipe().run()
    >>> boxes.at(0).tolist(), labels.at(0).tolist()
    ([[0.0, 0.0, 1.0, 1.0]], [7])
    """

    inputs = (3, 3)
    num_attempts = Arg(int, 1, "Number of windows drawn before another threshold is chosen.")

    def n_outputs(self) -> int:
        return 3

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        warn_deprecated("fn.ssd_random_crop is deprecated; use fn.random_bbox_crop and fn.slice")
        if len(inputs) != 3:
            raise ValueError(f"{cls.display_name()} takes 3 inputs, images, boxes and labels; {len(inputs)} given")
        for name in kwargs:
            if name not in ("name", "device"):
                cls.find_arg(name)
        if kwargs.get("device") not in (None, "cpu"):
            raise ValueError(f"{cls.display_name()}: device='{kwargs['device']}' can't be used: it takes 'cpu'")
        images, boxes, labels = inputs
        crop, cut = (REGISTRY[name] for name in ("random_bbox_crop", "slice"))
        of_crop = {k: v for k, v in kwargs.items() if k in cls.schema and k not in Operator.schema or k == "preserve"}
        window = {"scaling": [0.3, 1.0], "aspect_ratio": [0.5, 2.0], "thresholds": [0.0, 0.1, 0.3, 0.5, 0.7, 0.9]}
        anchor, shape, kept, of_kept = call(crop, (boxes, labels), {**window, **of_crop})
        return [call(cut, (images, anchor, shape), {"axes": [1, 0]}), kept, of_kept]
