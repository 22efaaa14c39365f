# SPDX-License-Identifier: Apache-2.0
"""Warps images by water waves."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments
from ._displaced import WATER, Masked


class Water(Masked):
    """Warps images as if they were seen through water waves.

    `out(x, y) = in(x + ampl_x * sin(freq_x * y + phase_x), y + ampl_y * cos(freq_y * x + phase_y))`, where x and y are
    the indices of the output's pixels, and (0, 0) is the corner of the input's first pixel. Input: HWC with any number
    of channels; uint8, uint16, int16 or float32. The output has the same shape and type.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(6, dtype=np.uint8).reshape(1, 6, 1), layout="HWC")
    ...     return fn.water(x, ampl_x=2, phase_x=1.5708, ampl_y=0, fill_value=9)
    >>> pipe().run()[0].at(0).ravel().tolist()
    [2, 3, 4, 5, 9, 9]
    """

    kind = WATER
    ampl_x = Arg(float, 10.0, "Amplitude of the displacement along x, in pixels.")
    ampl_y = Arg(float, 10.0, "Amplitude of the displacement along y, in pixels.")
    freq_x = Arg(float, 0.049087, "Frequency of the displacement along x, in radians per row.")
    freq_y = Arg(float, 0.049087, "Frequency of the displacement along y, in radians per column.")
    phase_x = Arg(float, 0.0, "Phase of the displacement along x, in radians.")
    phase_y = Arg(float, 0.0, "Phase of the displacement along y, in radians.")

    def setup(self) -> None:
        super().setup()
        names = ("ampl_x", "freq_x", "phase_x", "ampl_y", "freq_y", "phase_y")
        for name in names:
            if not np.isfinite(self.values[name]):
                raise ValueError(f"{self.display_name()}: {name} must be finite, got {self.values[name]}")
        self.constants = np.array([[self.values[name] for name in names] + [0.0] * 3], "f4")
        self.constants.setflags(write=False)

    def params(self, a: Arguments, x: Spec, *specs: Spec) -> dict[str, Any]:
        return {**super().params(a, x, *specs), "p": self.constants}
