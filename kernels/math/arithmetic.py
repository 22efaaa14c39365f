# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on two tensors: the operation, its type and the relative sizes of the operands are compiled in."""

from __future__ import annotations

import numpy as np

from penstock.core.batch import Spec
from penstock.core.dtypes import DALIDataType, to_numpy
from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.source import c_type

_WIDE = 100  # kWide of kernels/math/arithmetic.h


def plan(task: Task) -> list[Phase]:
    args, (out,) = task.call.args[0], task.outs
    compute = int(args["compute"])
    type_ = "Wide" if compute == _WIDE else c_type(to_numpy(DALIDataType(compute)))
    kinds = [_kind(x, out) for x in task.ins]
    if out.volumes().max(initial=0) >= 1 << 32:
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    types = ", ".join([str(int(args["operation"])), c_type(out.dtype), type_, *(c_type(x.dtype) for x in task.ins)])
    if "BROADCAST" in kinds:
        body = f"arithmetic_broadcast<{types}, 1, 2, {max(out.ndim, 1)}>(l);"
        return [Phase(body, grid_of(-(-out.volumes() // 1024), task.n))]
    sizes = [out.dtype.itemsize, *(x.dtype.itemsize for x in task.ins)]
    v = 16 // max(sizes)
    at_once = 4 if v < 16 else 2
    blocks = -(-(-(-out.volumes() // v) + 1) // (256 * at_once))
    body = f"arithmetic_runs<{types}, {', '.join(kinds)}, 1, 2, {v}, {at_once}>(l);"
    return [Phase(body, grid_of(several_each(blocks), task.n))]


def _kind(x: Spec, out: Spec) -> str:
    volumes, wanted = x.volumes(), out.volumes()
    some = wanted > 0
    if np.array_equal(volumes[some], wanted[some]):
        return "ALIKE"
    return "SINGLE" if (volumes[some] == 1).all() else "BROADCAST"
