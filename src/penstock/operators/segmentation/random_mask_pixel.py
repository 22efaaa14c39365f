# SPDX-License-Identifier: Apache-2.0
"""Random pixels of masks."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.draws import draws
from ...core.op import Arguments, PerSample, Seeded

_TYPES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32")


class RandomMaskPixel(Seeded):
    """Selects a random pixel of a mask, with equal probability for each, and returns its coordinates.

    Input: masks of any number of dimensions, of integers, bool or float32. With `foreground`, only pixels above
    `threshold`, or equal to `value`, are selected; if there are none, any pixel. The output is int64, one coordinate
    per axis, in the order of the axes.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     mask = types.Constant(np.uint8([[0, 0, 0], [0, 0, 9]]))
    ...     return fn.segmentation.random_mask_pixel(mask, foreground=1)
    >>> pipe().run()[0].at(0).tolist()
    [1, 2]
    """

    traced = False
    module = "segmentation"
    kernel = "segmentation/random_mask_pixel"
    by_frame = False
    foreground = PerSample(int, 0, "Whether to select only foreground pixels; 0 or 1.")
    threshold = PerSample(float, 0.0, "Pixels above this value are the foreground.")
    value = PerSample(int, None, "Pixels equal to this value are the foreground, instead of `threshold`.")

    def setup(self) -> None:
        if {"threshold", "value"} <= self.given:
            raise ValueError("give either `threshold` or `value`, not both")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in _TYPES:
            raise ValueError(f"a mask must be of one of the types {', '.join(_TYPES)}; got {x.dtype.name}")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return Spec.uniform(x.n, (x.ndim,), np.dtype("i8"))

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        by_value = a.value is not None
        return {
            **draws(a),
            "foreground": a.foreground != 0,
            "by_value": by_value,
            "value": a.value if by_value else 0,
            "threshold": a.threshold,
        }
