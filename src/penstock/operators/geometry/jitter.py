# SPDX-License-Identifier: Apache-2.0
"""Replaces pixels by random neighbours."""

from typing import Any

from ...core.batch import Spec
from ...core.draws import draws
from ...core.op import Arg, Arguments, Seeded
from ._displaced import JITTER, Masked


class Jitter(Seeded, Masked):
    """Replaces each pixel by a random pixel nearby: `out(x, y) = in(x + i, y + j)`.

    i and j are integers, uniform in [`-(nDegree // 2)`, `nDegree // 2`] and drawn for every pixel. Input: HWC with any
    number of channels; uint8, uint16, int16 or float32. The output has the same shape and type. The CPU and the GPU
    draw the same numbers.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.full((4, 4, 3), 7, np.uint8), layout="HWC")
    ...     return fn.jitter(x, nDegree=1), fn.jitter(x, fill_value=7)
    >>> [bool((out.at(0) == 7).all()) for out in pipe().run()]
    [True, True]
    """

    kind = JITTER
    nDegree = Arg(int, 2, "Twice the maximum displacement along each axis, in pixels; 0 to 32767.")

    def setup(self) -> None:
        super().setup()
        if not 0 <= self.values["nDegree"] < 1 << 15:
            raise ValueError(f"{self.display_name()}: nDegree must be in [0, 32767], got {self.values['nDegree']}")

    def params(self, a: Arguments, x: Spec, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, x, *specs), **draws(a), "range": self.values["nDegree"] // 2}
