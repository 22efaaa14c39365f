# SPDX-License-Identifier: Apache-2.0
"""Random numbers: the type and the distribution are compile-time constants; a thread makes 16 bytes at a time, or one
number of the beta distribution."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of
from penstock.gpu.source import c_type

_THREADS = 256
_BETA = 4  # of enum Distribution
_UNIT = 16  # bytes


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    (out,), kind = task.outs, int(task.call.args["kind"][0])
    nbytes, unit = out.volumes() * out.dtype.itemsize, out.dtype.itemsize if kind == _BETA else _UNIT
    if int(nbytes.max(initial=0)) >= unit << 32:
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    t = c_type(out.dtype)
    body = f"distribution_beta<{t}>(l);" if kind == _BETA else f"distribution_all<{t}, {kind}>(l);"
    return [Phase(body, grid_of(-(-nbytes // (unit * _THREADS)), task.n))]
