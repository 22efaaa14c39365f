# SPDX-License-Identifier: Apache-2.0
"""Random numbers: the type and the distribution are compiled in; a thread makes 16 bytes at a time."""

from __future__ import annotations

from ..launch import Phase, Task, grid_of
from ..source import c_type

_THREADS = 256
_UNIT = 16  # bytes


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    (out,), kind = task.outs, int(task.call.args["kind"][0])
    nbytes = out.volumes() * out.dtype.itemsize
    if int(nbytes.max(initial=0)) >= _UNIT << 32:
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    return [
        Phase(f"distribution_all<{c_type(out.dtype)}, {kind}>(l);", grid_of(-(-nbytes // (_UNIT * _THREADS)), task.n))
    ]
