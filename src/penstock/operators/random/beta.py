# SPDX-License-Identifier: Apache-2.0
"""Random numbers of the beta distribution."""

from __future__ import annotations

import numpy as np

from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample
from ._distribution import BETA, Distribution, rows


class Beta(Distribution):
    """Generates random numbers from the beta distribution on [0, 1].

    The density is proportional to x^(alpha - 1) (1 - x)^(beta - 1). The numbers are x / (x + y) of two gamma variates,
    drawn by the method of Marsaglia and Tsang (2000); the distribution is exact. The output is a scalar, unless its
    shape is given by `shape` or by an input of that shape.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1000, seed=1)
    ... def pipe():
    ...     return fn.random.beta(alpha=2.0, beta=6.0)
    >>> bool(abs(pipe().run()[0].as_array().mean() - 0.25) < 0.02)
    True
    """

    types = "f"
    alpha = PerSample(float, 1.0, "First shape parameter, positive.")
    beta = PerSample(float, 1.0, "Second shape parameter, positive.")

    def setup(self) -> None:
        super().setup()
        for name in ("alpha", "beta"):
            x = self.values[name]
            if x is not None and not 0 < x < np.inf:
                raise ValueError(f"fn.random.beta: {name} takes a positive number; got {x}")

    def draw(self, a: Arguments) -> np.ndarray:
        for name, x in (("alpha", a.alpha), ("beta", a.beta)):
            if self.values[name] is None:
                bad = ~((x > 0) & np.isfinite(x))
                SampleErrors.where(bad, lambda i, n=name, x=x: f"{n} takes a positive number; got {x[i]:g}")
        return rows(a, BETA, a.alpha, a.beta)
