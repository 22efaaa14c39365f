# SPDX-License-Identifier: Apache-2.0
"""Histogram equalization: images are counted in parts, then each part makes its tables and applies them."""

from __future__ import annotations

import numpy as np

from penstock.gpu.launch import Phase, Task, grid_of
from penstock.gpu.schemes.bounds import bound_of

_SIDE_BY_SIDE = 4  # interleaved channels counted together
_SMALLEST, _LARGEST = 1 << 13, 1 << 16  # bytes of a part
_PARTS = 1024  # enough to keep a large GPU busy


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    x, axis = task.ins[0], int(task.call.args["axis"][0])
    ones = np.ones(task.n, "i8")
    planes = x.stored[:, 0] if axis == 0 else ones
    channels = x.stored[:, 2] if axis == 2 else ones
    c = int(channels[0]) if (channels == channels[0]).all() and 1 <= channels[0] <= _SIDE_BY_SIDE else 0
    side = c or 1
    chunk = _SMALLEST
    while chunk < _LARGEST and x.volumes().sum() > chunk * _PARTS:
        chunk *= 2
    pixels = x.volumes() // np.maximum(planes * channels, 1)
    grid = grid_of(planes * channels // side * -(-pixels // (chunk // side)), task.n)
    most = bound_of(planes * channels)
    scratch = task.n * most * 256 * 4
    return [
        Phase(f"equalize_count<{c}, {chunk}, {most}>(l);", grid, scratch=scratch, zero=True),
        Phase(f"equalize_apply<{c}, {chunk}, {most}>(l);", grid, scratch=scratch),
    ]
