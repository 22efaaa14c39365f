# SPDX-License-Identifier: Apache-2.0
"""Launches of noise kernels: the type is compiled in; each thread computes 16 bytes at a time; see
kernels/noise/gpu_noise.h."""

from __future__ import annotations

import numpy as np

from ..launch import Phase, Task, grid_of
from ..source import c_type

_THREADS, _UNIT = 256, 16


def one_launch(task: Task, function: str, elements: np.ndarray | None = None, more: str = "") -> list[Phase]:
    """A launch of `function`<type, more> for `elements` (n,) per sample; by default those of the output."""
    (out,) = task.outs
    elements = out.volumes() if elements is None else elements
    if (elements >= 1 << 32).any():
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    size = min(out.dtype.itemsize, 4)
    blocks = -(-elements * size // (_UNIT * _THREADS))
    return [Phase(f"{function}<{c_type(out.dtype)}{more}>(l);", grid_of(blocks, task.n))]
