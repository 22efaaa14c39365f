# SPDX-License-Identifier: Apache-2.0
"""Distributes reductions over threads; see kernels/math/gpu_groups.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.traced import plain
from ..launch import grid_of, plain_spec
from .bounds import bound_of

_MOST = 2048  # up to this many parameters are summed by thread blocks; more, by one thread each
_MOST_PARTS = 64  # for all parameters of a sample
_ELEMENTS_OF_PART = 4096  # at least, if there are several parts
_MANY = 32  # neighbouring parameters that are read coalesced


def parameters(x: Spec, reduced: np.ndarray) -> np.ndarray:
    """Number of parameters (n,): positions along the axes that are not reduced."""
    kept = reduced[: x.ndim] == 0
    return x.stored[:, kept].prod(axis=1)


def most_parameters(x: Spec, reduced: np.ndarray, together: bool = False) -> int:
    """A bound (power of two) on the parameters if thread blocks do the sums; 0 if single threads do. `together`:
    samples share their parameters, so that one thread for each would be too few threads."""
    of_each = parameters(x, reduced)
    period = x.stored[:, :0].prod(axis=1)
    for d in range(x.ndim - 1, -1, -1):
        if reduced[d]:
            break
        period = period * x.stored[:, d]
    whole = bool((period >= _MANY).any()) and not bool(reduced[: x.ndim].all())
    if (of_each > _MOST).any() or (whole and not together):
        return 0
    return bound_of(of_each)


def parts_of(x: Spec, reduced: np.ndarray, most: int) -> np.ndarray:
    """About the number of parts (n,) in which the elements of a parameter are summed, if a sample has up to `most`
    parameters: see gpu_groups.h. For grids."""
    x = plain_spec(x)
    each = x.volumes() // np.maximum(parameters(x, plain(reduced)), 1)
    return np.clip(each // _ELEMENTS_OF_PART, 1, max(_MOST_PARTS // most, 1))


def scratch_of(most: int, n: int) -> int:
    return n * (2 * max(most, _MOST_PARTS) + 2 * most) * 8


def grids(x: Spec, reduced: np.ndarray, most: int) -> tuple[tuple, tuple, tuple]:
    """Grids for sums (one part per block), for parameters and for elements (one thread each)."""
    n = parameters(x, reduced)
    return (
        grid_of(plain(n) * (parts_of(x, reduced, most) if most else 1), x.n),
        grid_of(-(-n // 256), x.n),
        grid_of(-(-x.volumes() // 1024), x.n),
    )
