# SPDX-License-Identifier: Apache-2.0
"""Non-silent regions: a thread adds an interval of a signal that others have read; then a block of threads per sample
searches."""

from __future__ import annotations

import numpy as np

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task, grid_of
from penstock.gpu.schemes.bounds import bound_of
from penstock.gpu.source import c_type

_ADDING, _LOOKING = 32, 256  # intervals per adding block; threads of a searching block
_WARPS = 16  # of an adding block


def plan(task: Task) -> list[Phase]:
    args, x = task.call.args, task.ins[0]
    assert args is not None
    volumes = x.volumes()
    interval = int(plain(args["reset_interval"])[0])
    intervals = -(-plain(volumes) // interval) if interval > 0 else np.ones(task.n, "i8")
    most, n = bound_of(volumes), task.n
    scratch = 4 * n * (1 + most)
    grid = grid_of(np.maximum(-(-intervals // _ADDING), 1), n)
    add = f"nonsilent_mean_squares<{c_type(x.dtype)}, {_WARPS}>(l, {most});"
    return [
        Phase(add, grid, (32 * _WARPS, 1, 1), scratch=scratch, zero=True),
        Phase(f"nonsilent_ends<{_LOOKING}>(l, {most});", (1, min(n, 65535), 1), (_LOOKING, 1, 1), scratch=scratch),
    ]
