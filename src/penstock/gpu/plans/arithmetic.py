# SPDX-License-Identifier: Apache-2.0
"""Arithmetic: the operation, its type and how each operand lies beside the output are compiled in."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ..launch import Phase, Task, grid_of
from ..source import c_type

_WIDE = 100  # kWide of kernels/math/arithmetic.h
_NEG = 21  # the first operation on one operand


def plan(task: Task) -> list[Phase]:
    args, (out,) = task.call.args[0], task.outs
    operation, compute, constant_at = int(args["operation"]), int(args["compute"]), int(args["constant_at"])
    type_ = "Wide" if compute == _WIDE else c_type(to_numpy(DALIDataType(compute)))
    kinds, types, at, position = [], [], [], 1
    for i in range(2):
        if i == constant_at or (i == 1 and operation >= _NEG):
            # What has one operand only reads it twice.
            kinds.append("CONSTANT" if i == constant_at else kinds[0])
            types.append("float" if i == constant_at else types[0])
            at.append(at[0] if at and i != constant_at else 0)
            continue
        x = task.ins[position - 1]
        kinds.append(_kind(x, out))
        types.append(c_type(x.dtype))
        at.append(position)
        position += 1
    if int(out.volumes().max(initial=0)) >= 1 << 32:
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    names = ", ".join([str(operation), c_type(out.dtype), type_, *types, *kinds, *map(str, at)])
    if "BROADCAST" in kinds:
        body = f"arithmetic_broadcast<{names}, {max(out.ndim, 1)}>(l);"
        return [Phase(body, grid_of(-(-out.volumes() // 1024), task.n))]
    sizes = [out.dtype.itemsize, *(x.dtype.itemsize for x in task.ins)]
    v = 16 // max(sizes)
    at_once = 4 if v < 16 else 2
    blocks = -(-(-(-out.volumes() // v) + 1) // (256 * at_once))
    return [Phase(f"arithmetic_runs<{names}, {v}, {at_once}>(l);", grid_of(blocks, task.n))]


def _kind(x: Spec, out: Spec) -> str:
    volumes, wanted = x.volumes(), out.volumes()
    some = wanted > 0
    if np.array_equal(volumes[some], wanted[some]):
        return "ALIKE"
    return "SINGLE" if (volumes[some] == 1).all() else "BROADCAST"
