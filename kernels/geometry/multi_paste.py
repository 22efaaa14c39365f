# SPDX-License-Identifier: Apache-2.0
"""Pasted regions: threads make runs of 16 bytes of the canvas."""

from __future__ import annotations

import numpy as np

from penstock.core.dtypes import DALIDataType, to_numpy
from penstock.gpu.launch import Phase, Task, grid_of
from penstock.gpu.source import c_type

_THREADS = 256


def plan(task: Task) -> list[Phase]:
    args, out = task.call.args, task.outs[0]
    assert args is not None
    if (out.volumes() >= 1 << 30).any():
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    of = to_numpy(DALIDataType(int(args["dtype"][0])))
    runs = (out.volumes() * out.dtype.itemsize + 15) // 16 + 1
    body = f"paste_runs<{c_type(np.dtype(of))}, {c_type(out.dtype)}, {_THREADS}>(l);"
    return [Phase(body, grid_of(-(-runs // (2 * _THREADS)), task.n))]
