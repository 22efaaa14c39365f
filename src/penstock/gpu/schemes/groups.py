# SPDX-License-Identifier: Apache-2.0
"""How reductions are spread over threads; see kernels/math/gpu_groups.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ..launch import grid_of
from .bounds import bound_of

_MOST = 2048  # parameters that blocks of threads sum; of more, each by a thread
_MOST_PARTS = 64  # of all parameters of a sample
_MANY = 32  # neighbouring parameters that threads read side by side


def parameters(x: Spec, reduced: np.ndarray) -> np.ndarray:
    """(n,) positions of the axes that are not reduced."""
    kept = reduced[: x.ndim] == 0
    return x.stored[:, kept].prod(axis=1)


def most_parameters(x: Spec, reduced: np.ndarray, together: bool = False) -> int:
    """A power of two, if blocks of threads are to sum; 0: threads. `together`: samples share their parameters, so that
    a thread for each would be few threads."""
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


def parts_of(most: int) -> int:
    """How many parts the elements of a parameter are summed in, of a sample that has `most`: see gpu_groups.h."""
    return 1 if most >= _MOST_PARTS else _MOST_PARTS // most


def scratch_of(most: int, n: int) -> int:
    return n * (2 * max(most, _MOST_PARTS) + 2 * most) * 8


def grids(x: Spec, reduced: np.ndarray, most: int) -> tuple[tuple, tuple, tuple]:
    """For sums (a part per block), for parameters and for elements (a thread each)."""
    n = parameters(x, reduced)
    return (
        grid_of(n * (parts_of(most) if most else 1), x.n),
        grid_of(-(-n // 256), x.n),
        grid_of(-(-x.volumes() // 1024), x.n),
    )
