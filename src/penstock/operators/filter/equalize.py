# SPDX-License-Identifier: Apache-2.0
"""Equalisation of histograms."""

from typing import Any

from ...core.batch import Spec
from ...core.op import Arguments, Operator


class Equalize(Operator):
    """Equalises the histogram of each channel of an image.

    Let `n(v)` be the number of elements of a channel that are at most v, and m its smallest value. Then v becomes
    `255 * (n(v) - n(m)) / (n(255) - n(m))`, rounded, halves to even. A channel with a single value is not changed.
    Input: images (HW, HWC, CHW) or sequences of them, of type uint8.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.equalize(types.Constant(np.uint8([[10, 11, 12, 13]]), layout="HW"))
    >>> pipe().run()[0].at(0).tolist()
    [[0, 85, 170, 255]]
    """

    layouts = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")
    kernel = "filter/equalize"
    experimental = True

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name != "uint8":
            raise TypeError(f"input type {x.dtype.name} is not supported; supported: uint8; fn.cast converts others")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {"axis": x.axis("C")}
