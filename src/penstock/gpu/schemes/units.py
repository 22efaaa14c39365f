# SPDX-License-Identifier: Apache-2.0
"""Chooses units and grids of kernels that only copy bytes; see kernels/core/gpu_units.h."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ..launch import grid_of

_THREADS = 256
_EACH = 4  # units per thread


def unit_of(pieces: list[np.ndarray]) -> int:
    """The largest power of two, at most 16, that divides all of these byte counts."""
    both = np.bitwise_or.reduce(np.concatenate(pieces), initial=16)
    return int(both & -both)


def grid_of_units(out: Spec, unit: int, n: int) -> tuple[int, int, int]:
    nbytes = out.volumes() * out.dtype.itemsize
    if nbytes.max(initial=0) >= (1 << 32) * out.dtype.itemsize:
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    return grid_of(-(-nbytes // (unit * _THREADS * _EACH)), n)
