# SPDX-License-Identifier: Apache-2.0
"""Normally distributed random numbers."""

from __future__ import annotations

import numpy as np

from ...core.op import Arguments, PerSample
from ._distribution import NORMAL, Distribution, rows


class Normal(Distribution):
    """Generates random numbers from the normal distribution: mean + stddev * z.

    The output is a scalar, unless its shape is given by `shape` or by an input of that shape.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1000, seed=1)
    ... def pipe():
    ...     return fn.random.normal(mean=5.0, stddev=2.0)
    >>> x = pipe().run()[0].as_array()
    >>> bool(abs(x.mean() - 5) < 0.3), bool(abs(x.std() - 2) < 0.2)
    (True, True)
    """

    deprecated = ("NormalDistribution",)
    mean = PerSample(float, 0.0, "Mean of the distribution.")
    stddev = PerSample(float, 1.0, "Standard deviation. The sign is ignored.")

    def draw(self, a: Arguments) -> np.ndarray:
        return rows(a, NORMAL, a.mean, a.stddev)
