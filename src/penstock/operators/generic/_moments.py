# SPDX-License-Identifier: Apache-2.0
"""Mean and standard deviation of a whole batch along some axes: moments of each sample, combined over the batch."""

from typing import Any

import numpy as np

from ...core.batch import Batch, Spec
from ...core.op import Arg, Arguments, Operator
from ...core.rows import address
from ._reduced import Reduced


def parameters(x: Spec, reduced: np.ndarray) -> int:
    """Number of parameters per sample. Raises ValueError if the samples' extents differ along axes that are not
    reduced."""
    kept = np.where(reduced, 1, x.shape)
    differs = (kept != kept[:1]).any(axis=1)
    if differs.any():
        i = int(differs.nonzero()[0][0])
        raise ValueError(
            f"batch=True needs samples of the same extents along the axes that are not reduced; sample 0 has "
            f"the shape {x.shape[0].tolist()}, sample {i} {x.shape[i].tolist()}; reduced are the axes "
            f"{reduced[0].nonzero()[0].tolist()}"
        )
    return int(kept[0].prod()) if x.n else 0


class _Moments(Reduced):
    """Moments of each sample (3, parameters), float64: number of elements, mean, sum of squared distances from `center`
    or from the mean."""

    fn_name = "normalize"
    kernel = "math/moments"
    center = Arg(float, None, "The value from which distances are measured. By default the mean of each sample.")

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return Spec.uniform(x.n, (3, parameters(x, a.reduced)), np.dtype("f8"))

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {
            "reduced": a.mask,
            "has_center": a.center is not None,
            "center": 0.0 if a.center is None else a.center,
        }


class _PooledMoments(Operator):
    """Mean and standard deviation over all samples: two outputs (parameters,), float64, the same for each sample.

    Variances are added as in Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for Computing Sample
    Variances (1979)."""

    fn_name = "normalize"
    mixes_samples = True
    is_prompt = True
    ddof = Arg(int, 0, "Delta degrees of freedom: subtracted from the number of elements in the variance.")
    centered = Arg(bool, False, "Whether distances are from one centre, not from the means of the samples.")

    def n_outputs(self) -> int:
        return 2

    def run(self, a: Arguments, moments: Batch) -> tuple[Batch, Batch]:
        if not len(moments):  # all samples of the batch are bad
            return _everywhere(np.empty(0), 0), _everywhere(np.empty(0), 0)
        count, mean, squares = moments.array().swapaxes(0, 1)
        total = count.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            pooled = (count * mean).sum(axis=0) / total
            squares = squares.sum(axis=0)
            if not a.centered:
                squares = squares + (count * (mean - pooled) ** 2).sum(axis=0)
            variance = np.where(total > a.ddof, squares / (total - a.ddof), 0)
        return _everywhere(pooled, len(moments)), _everywhere(np.sqrt(variance), len(moments))


def _everywhere(value: np.ndarray, n: int) -> Batch:
    """A batch of n samples that share the same memory."""
    value = np.ascontiguousarray(value)
    spec = Spec.uniform(n, value.shape, value.dtype)
    rows = spec.packed()
    rows["data"] = address(value)
    return Batch(spec, rows, (value,))
