# SPDX-License-Identifier: Apache-2.0
"""Random decisions."""

from __future__ import annotations

import numpy as np

from ...core.dtypes import DALIDataType
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample
from ._distribution import COIN, Distribution, rows

_TYPES = ("bool", "uint8", "int32")


class CoinFlip(Distribution):
    """Returns 1 with the given probability, otherwise 0.

    The output is a scalar, unless its shape is given by `shape` or by an input of that shape.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=8, seed=1)
    ... def pipe():
    ...     return fn.random.coin_flip(probability=1.0)
    >>> pipe().run()[0].as_array().tolist()
    [1, 1, 1, 1, 1, 1, 1, 1]
    """

    deprecated = ("CoinFlip",)
    default_type = DALIDataType.INT32
    types = "iufb"
    probability = PerSample(float, 0.5, "Probability of 1, in [0, 1].")

    def setup(self) -> None:
        super().setup()
        if self.type.name not in _TYPES:
            raise ValueError(
                f"fn.random.coin_flip: data type {self.type.name} is currently not supported. Supported types are : "
                f"{', '.join(_TYPES)}; fn.cast gives others"
            )
        p = self.values["probability"]
        if p is not None and not 0 <= p <= 1:
            raise ValueError(f"fn.random.coin_flip: probability takes a number in [0, 1]; got {p}")

    def draw(self, a: Arguments) -> np.ndarray:
        if self.values["probability"] is None:
            bad = ~((a.probability >= 0) & (a.probability <= 1))
            SampleErrors.where(bad, lambda i: f"probability takes a number in [0, 1]; got {a.probability[i]:g}")
        return rows(a, COIN, a.probability)
