# SPDX-License-Identifier: Apache-2.0
"""Uniformly distributed random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample
from ._distribution import UNIFORM, VALUES, Distribution, rows


class Uniform(Distribution):
    """Generates random numbers, uniformly distributed in `range` or over the discrete `values`.

    The output is a scalar, unless its shape is given by `shape` or by an input of that shape. Floating point numbers
    are in [low, high). Integers are real numbers of the range rounded to the nearest, so both ends are possible and
    half as frequent as the others; values beyond the range of the type are clamped (DALI wraps them around).

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=100, seed=1)
    ... def pipe():
    ...     return fn.random.uniform(range=(2.0, 3.0)), fn.random.uniform(values=[1, 4])
    >>> x, y = pipe().run()
    >>> bool(x.as_array().min() >= 2 and x.as_array().max() < 3), sorted(set(y.as_array().tolist()))
    (True, [1.0, 4.0])
    """

    deprecated = ("Uniform",)
    range = PerSample([float], [-1.0, 1.0], "The range [low, high).")
    values: Any = PerSample(
        [float], None, "Values to choose from, with equal probability, instead of `range`.", ragged=True
    )

    def setup(self) -> None:
        super().setup()
        v = self.values
        if v["values"] is not None and not v["values"]:
            raise ValueError("fn.random.uniform: 'values' is an empty list")
        if v["range"] is not None:
            if len(v["range"]) != 2:
                raise ValueError(f"fn.random.uniform: range takes two numbers, low and high; got {v['range']}")
            if "values" not in self.given and not v["range"][0] < v["range"][1]:
                raise ValueError(f"fn.random.uniform: range takes low < high; got {v['range']}")
            if not np.isfinite(v["range"]).all():
                raise ValueError(f"fn.random.uniform: range takes finite numbers; got {v['range']}")

    def draw(self, a: Arguments) -> np.ndarray:
        if a.values is not None:
            a.table = np.ascontiguousarray(a.values, "f8")
            lengths = a.lengths("values")
            SampleErrors.where(lengths == 0, lambda i: "'values' has no values to choose from")
            return rows(a, VALUES, table=a.table, lengths=lengths)
        if a.range.shape[1] != 2:
            raise ValueError(f"range takes two numbers, low and high; got {a.range.shape[1]}")
        if "range" not in self.values or self.values["range"] is None:
            bad = ~(a.range[:, 0] < a.range[:, 1])
            SampleErrors.where(bad, lambda i: f"range takes low < high; got {a.range[i].tolist()}")
            bad = ~np.isfinite(a.range).all(axis=1)
            SampleErrors.where(bad, lambda i: f"range takes finite numbers; got {a.range[i].tolist()}")
        return rows(a, UNIFORM, a.range[:, 0], a.range[:, 1])
