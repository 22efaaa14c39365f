# SPDX-License-Identifier: Apache-2.0
"""Mel-frequency cepstral coefficients."""

from functools import cache

import numpy as np

from ...core.batch import Spec
from ...core.op import Arg, Arguments
from ._weighted_sums import WeightedSums, sums_of


class MFCC(WeightedSums):
    """Computes mel-frequency cepstral coefficients: the cosine transform of a mel spectrum in decibels along an axis.

    Returns the first `n_mfcc` coefficients, liftered if `lifter` is not 0.

    Coefficients of type 2 are `sum x[j] cos(pi / n (j + 1/2) k)`, without the factor 2 of some definitions; the same
    holds for the other types. Input: float32 with two dimensions or more. The output has the same layout.

    >>> from penstock import fn, pipeline_def, types
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.mfcc(types.Constant([[1.0], [2.0], [3.0]]), n_mfcc=2)
    >>> [round(float(x), 3) for x in pipe().run()[0].at(0)[:, 0]]
    [6.0, -1.732]
    """

    axis = Arg(int, 0, "Index of the frequency axis, 0 or more.")
    n_mfcc = Arg(int, 20, "Maximum number of coefficients to return.")
    dct_type = Arg(int, 2, "Type of the cosine transform, 1 to 4.")
    normalize = Arg(bool, False, "Whether to use the orthonormal transform. Not possible for type 1.")
    lifter = Arg(float, 0.0, "If L is not 0, coefficient k (from 1 on) is multiplied by `1 + L / 2 * sin(pi * k / L)`.")

    def setup(self) -> None:
        v = self.values
        if not 1 <= v["dct_type"] <= 4:
            raise ValueError(f"dct_type takes 1 to 4; got {v['dct_type']}")
        if v["normalize"] and v["dct_type"] == 1:
            raise ValueError("normalize is not possible for dct_type=1")
        if v["n_mfcc"] < 1:
            raise ValueError(f"n_mfcc takes a positive number; got {v['n_mfcc']}")
        if v["axis"] < 0:
            raise ValueError(f"axis takes a number from 0 on; got {v['axis']}")

    def sums(self, extent: int) -> dict[str, np.ndarray]:
        v = self.values
        return _transform(extent, v["n_mfcc"], v["dct_type"], v["normalize"], v["lifter"])

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        a.at = a.axis
        if x.ndim < 2:
            raise ValueError(f"the input has {x.ndim} dimensions; it takes two or more")
        if a.at >= x.ndim:
            raise ValueError(f"axis {a.at} is out of range for an input of {x.ndim} axes")
        if a.dct_type == 1 and (x.shape[:, a.at] == 1).any():
            raise ValueError("dct_type=1 needs more than one frequency")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape = x.shape.copy()
        shape[:, a.at] = np.minimum(shape[:, a.at], a.n_mfcc)
        return x.like(shape=shape)


@cache
def _transform(n: int, kept: int, kind: int, normalize: bool, lifter: float) -> dict[str, np.ndarray]:
    k, j = np.arange(min(n, kept))[:, None], np.arange(n)[None]
    if kind == 1:
        matrix = np.cos(np.pi / max(n - 1, 1) * j * k)
        matrix[:, :1] /= 2
        matrix[:, n - 1 :] /= 2
    elif kind == 2:
        matrix = np.cos(np.pi / max(n, 1) * (j + 0.5) * k)
    elif kind == 3:
        matrix = np.cos(np.pi / max(n, 1) * j * (k + 0.5))
        matrix[:, :1] /= 2
    else:
        matrix = np.cos(np.pi / max(n, 1) * (j + 0.5) * (k + 0.5))
    if normalize:
        matrix *= np.sqrt(2 / max(n, 1))
        if kind == 2:
            matrix[:1] *= np.sqrt(0.5)
        elif kind == 3:
            matrix[:, :1] *= np.sqrt(2)
    if lifter:
        matrix *= 1 + lifter / 2 * np.sin(np.pi / lifter * (k + 1))
    return sums_of(matrix)
