# SPDX-License-Identifier: Apache-2.0
"""Normally distributed noise."""

from __future__ import annotations

from typing import Any

from ...core.batch import Spec
from ...core.draws import draws
from ...core.op import Arguments, PerSample
from ._noise import Noise


class Gaussian(Noise):
    """Adds normally distributed noise: `out = in + mean + stddev * z`, with an independent z for every element.

    Input: integers or float32 of any shape. The output has the same type; integers are rounded and clamped. The CPU and
    the GPU return the same numbers.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     gray = types.Constant(np.full((100, 100, 3), 128, np.uint8), layout="HWC")
    ...     return fn.noise.gaussian(gray, stddev=10.0)
    >>> x = pipe().run()[0].at(0)
    >>> bool(abs(x.mean() - 128) < 1), bool(abs(x.std() - 10) < 1)
    (True, True)
    """

    kernel = "noise/gaussian"
    mean = PerSample(float, 0.0, "Mean of the noise, in values of the input.")
    stddev = PerSample(float, 1.0, "Standard deviation of the noise. The sign is ignored.")

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {**draws(a), "mean": a.mean, "stddev": a.stddev}
