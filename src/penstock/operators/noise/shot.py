# SPDX-License-Identifier: Apache-2.0
"""The noise of counting photons."""

from __future__ import annotations

from typing import Any

from ...core.batch import Spec
from ...core.draws import draws
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample
from ._noise import Noise

_FACTOR = 12.0


class Shot(Noise):
    """Replaces every element by a Poisson-distributed number around it: `out = factor * poisson(in / factor)`.

    This simulates a sensor that counts photons, with `factor` as the brightness of one photon: the mean is kept, and
    the variance is `factor * in`. A factor of 0 leaves the input unchanged; negative elements become 0. Input: integers
    or float32 of any shape. The output has the same type; integers are rounded and clamped. The CPU and the GPU return
    the same numbers.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     gray = types.Constant(np.full((100, 100, 3), 90, np.uint8), layout="HWC")
    ...     return fn.noise.shot(gray, factor=10.0)
    >>> x = pipe().run()[0].at(0)
    >>> bool(abs(x.mean() - 90) < 1), bool(abs(x.std() - 30) < 1)
    (True, True)
    """

    kernel = "noise/shot"
    factor = PerSample(
        float,
        None,
        "Brightness of one photon, in values of the input; larger values give more noise. By default 12, as in DALI, "
        "whose documentation says 20.",
    )

    def setup(self) -> None:
        super().setup()
        if "factor" not in self.given:
            self.values["factor"] = _FACTOR

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        wrong = ~((a.factor >= 0) & (a.factor < float("inf")))
        SampleErrors.where(wrong, lambda i: f"`factor` must be a positive number or 0; got {a.factor[i]:g}")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {**draws(a), "factor": a.factor}
