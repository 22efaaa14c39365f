# SPDX-License-Identifier: Apache-2.0
"""How reductions are spread over threads; see kernels/math/gpu_groups.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.traced import plain
from ..launch import grid_of
from .bounds import bound_of

_MOST = 2048  # parameters that blocks of threads sum; of more, each by a thread
_MANY = 32  # neighbouring parameters that threads read side by side


def parameters(x: Spec, reduced: np.ndarray) -> np.ndarray:
    """(n,) positions of the axes that are not reduced."""
    kept = reduced[: x.ndim] == 0
    return x.stored[:, kept].prod(axis=1)


def most_parameters(x: Spec, reduced: np.ndarray, together: bool = False) -> int:
    """A power of two, if blocks of threads are to sum; 0: threads. `together`: samples share their parameters, so that
    a thread for each would be few threads."""
    of_each = parameters(x, reduced)
    most = int(plain(of_each).max(initial=1))
    period = 1
    for d in range(x.ndim - 1, -1, -1):
        if reduced[d]:
            break
        period *= int(plain(x.stored)[:, d].max(initial=1))
    whole = period >= _MANY and not bool(reduced[: x.ndim].all())
    if most > _MOST or (whole and not together):
        return 0
    return bound_of(of_each)


def parts_of(most: int) -> int:
    """How many parts the elements of a parameter are summed in."""
    return 1 if most >= 64 else 64 // most


def scratch_of(most: int, n: int) -> int:
    return n * most * (2 * parts_of(most) + 2) * 8


def grids(x: Spec, reduced: np.ndarray, most: int) -> tuple[tuple, tuple, tuple]:
    """For sums (a part per block), for parameters and for elements (a thread each)."""
    n = parameters(x, reduced)
    return (
        grid_of(n * (parts_of(most) if most else 1), x.n),
        grid_of(-(-n // 256), x.n),
        grid_of(-(-x.volumes() // 1024), x.n),
    )
