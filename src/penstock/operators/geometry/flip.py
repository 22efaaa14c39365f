# SPDX-License-Identifier: Apache-2.0
"""Mirrors images, volumes and sequences."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arguments, Operator, PerSample

_BOOL, _INT64 = np.dtype("?"), np.dtype("i8")


class Flip(Operator):
    """Flips images left to right (`horizontal`) or upside down (`vertical`), volumes front to back (`depthwise`).

    Accepts any type.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.flip(types.Constant(np.arange(4).reshape(2, 2, 1), layout="HWC"), vertical=1)
    >>> pipe().run()[0].at(0)[..., 0].tolist()
    [[3, 2], [1, 0]]
    """

    layouts = ("FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW")
    kernel = "geometry/flip"
    is_light = True
    windowed = "DHWC"
    horizontal = PerSample(int, 1, "If not 0, flips left and right.")
    vertical = PerSample(int, 0, "If not 0, flips top and bottom.")
    depthwise = PerSample(int, 0, "If not 0, flips the front and the back of volumes.")

    def plan(self, a: Arguments, x: Spec) -> None:
        a.flip, _ = a.native.allocate((x.n, x.ndim), _BOOL)
        for name, column in (("W", a.horizontal), ("H", a.vertical), ("D", a.depthwise)):
            if name in x.layout:
                a.flip[:, x.axis(name)] = column

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        origin, at = a.native.allocate(x.shape.shape, _INT64)
        a.native.call("mirrored_windows", a.flip, x.shape, out.origin, out.stored, x.shape.size, at)
        return origin, out.stored

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        origin, _ = self.region(a, x, out)
        return {"start": origin - x.origin, "flip": a.flip}
