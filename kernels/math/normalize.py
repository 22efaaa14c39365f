# SPDX-License-Identifier: Apache-2.0
"""Normalization: moments that are not given are computed first, in parts if there are few parameters."""

from __future__ import annotations

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task, grid_of, several_each
from penstock.gpu.schemes.groups import grids, most_parameters, parameters, parts_of, scratch_of
from penstock.gpu.schemes.reductions import is_simple, turns_of

_COMPUTED, _ARGUMENT = 0, 1
_VALUE_THREADS, _VALUES_AT_ONCE = 256, 4
_RUN_THREADS, _AT_ONCE = 192, 4  # of kernels/math/normalize.cu


def plan(task: Task) -> list[Phase]:
    args = task.call.args
    assert args is not None
    x, reduced = task.ins[0], args["reduced"][0]
    together = bool(args["together"][0])
    if args["mean_origin"][0] == args["stddev_origin"][0] == _ARGUMENT:
        return [_given(task)]
    most = most_parameters(x, reduced, together)
    sums, each_parameter, elements = grids(x, reduced, most)
    if not most and together:
        return [Phase("normalize_alone_together<To0::T, From0::T>(l);", (each_parameter[0], 1, 1))]
    if not most:
        return [Phase("normalize_alone<To0::T, From0::T>(l);", each_parameter)]
    axes, block = reduced[: x.ndim].astype(bool), (256, 1, 1)
    turns = turns_of(x, axes) if is_simple(axes) else 0
    if turns:
        block = (_RUN_THREADS, 1, 1)
        runs = plain(parameters(x, reduced)) // turns
        sums = grid_of(several_each(runs * parts_of(x, reduced, most)), task.n)
        at_once = 16 // max(x.dtype.itemsize, task.outs[0].dtype.itemsize) * _RUN_THREADS * _AT_ONCE
        elements = grid_of(several_each(-(-x.volumes() // at_once)), task.n)
    scratch, phases = scratch_of(most, task.n), []
    if args["mean_origin"][0] == _COMPUTED:
        phases.append(Phase(f"normalize_sums<From0::T, {most}, {turns}>(l);", sums, block, scratch=scratch))
    if args["stddev_origin"][0] == _COMPUTED:
        phases.append(Phase(f"normalize_squares<From0::T, {most}, {turns}>(l);", sums, block, scratch=scratch))
    what, apply = f"{most}, {turns}", "true" if together else "false"
    if together:
        each = (max(int(parameters(x, reduced).max(initial=0)), 1), 1, 1)
        phases.append(Phase(f"normalize_join<From0::T, {what}>(l);", each, scratch=scratch))
    else:
        phases.append(Phase(f"normalize_finish<From0::T, {what}>(l);", each_parameter, scratch=scratch))
    phases.append(Phase(f"normalize_apply<To0::T, From0::T, {what}>(l, {apply});", elements, block, scratch=scratch))
    return phases


def _given(task: Task) -> Phase:
    """The launch for moments that are arguments: all parameters are the same."""
    x, out = task.ins[0], task.outs[0]
    v = 16 // max(x.dtype.itemsize, out.dtype.itemsize)
    blocks = -(-(-(-x.volumes() // v) + 1) // (_VALUE_THREADS * _VALUES_AT_ONCE))
    moments = f"GivenMoments<To0::T, From0::T, {v}>"
    body = f"run_values<{moments}, 1, {_VALUE_THREADS}, {_VALUES_AT_ONCE}>(l);"
    return Phase(body, grid_of(several_each(blocks), task.n), (_VALUE_THREADS, 1, 1), resident=4)
