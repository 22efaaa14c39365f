# SPDX-License-Identifier: Apache-2.0
"""Pixels that change places with their neighbours at random."""

from typing import Any

from ...core.batch import Spec
from ...core.draws import draws
from ...core.op import Arg, Arguments, Seeded
from ._displaced import JITTER, Masked


class Jitter(Seeded, Masked):
    """Takes every pixel from a random place nearby: `out(x, y) = in(x + i, y + j)`.

    i and j are integers, each from `-(nDegree // 2)` to `nDegree // 2` with equal chance, drawn for every pixel. Layout
    HWC with any number of channels; uint8, uint16, int16 or float32. The output has the input's shape and type. CPU
    and GPU draw the same numbers.

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
    nDegree = Arg(int, 2, "Twice the distance in pixels that a pixel may come from, along each axis.")

    def setup(self) -> None:
        super().setup()
        if not 0 <= self.values["nDegree"] < 1 << 15:
            raise ValueError(f"{self.display_name()}: nDegree must be in [0, 32767], got {self.values['nDegree']}")

    def params(self, a: Arguments, x: Spec, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, x, *specs), **draws(a), "range": self.values["nDegree"] // 2}
