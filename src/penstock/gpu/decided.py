# SPDX-License-Identifier: Apache-2.0
"""What the launches of one batch must have found alike in another, to be good for it too.

`Fusion.plan` decides by data: constants that are compiled in, the channels of a pixel, what is moved along which axis.
All of that is expected of a later batch here. Grids, and how many threads share a row, are no matter of right or wrong:
kernels go on where there is more than a grid covers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.batch import Spec
from ..core.traced import Untraceable, is_constant
from ..core.tracing import Tracer
from . import forms
from .launch import Call, Fusion, Launch, Task, head_kind

_LARGEST = 1 << 30  # elements of a sample that 32-bit places reach, with room for padding


class OddBatch(ValueError):
    """Launches are chosen by what is odd about a batch; another one is to be traced."""


def expect(
    tracer: Tracer,
    fusion: Fusion,
    calls: list[Call],
    columns: list[dict[str, Any]],
    at_hand: list[Spec],
    specs: list[Spec],
) -> list[Any]:
    """Adds checks of what the launches follow from to the program. `columns` are the arguments of each call, `specs`
    those of the tensors, `at_hand` the same of the batch at hand. Gives the bytes of scratch memory that follow from
    the batch. Raises OddBatch."""
    scratch: list[Any] = []
    for head, locals_ in fusion.groups:
        called = [head, *locals_] if head >= 0 else locals_
        form = forms.form_of(calls[head].kernel, len(calls[head].ins)) if head >= 0 else ""
        if not form and all(forms.form_of(calls[i].kernel, len(calls[i].ins)) == "values" for i in called):
            continue
        first = calls[called[0]].outs[0] if head >= 0 else calls[called[0]].ins[0]
        chain = [first, *(calls[i].outs[0] for i in locals_)]
        for t in dict.fromkeys([*chain, *((*calls[head].outs, *calls[head].ins) if head >= 0 else ())]):
            _expect_tensor(tracer, specs[t])
        for i in called:
            _expect_arguments(tracer, calls[i], columns[i], specs, i == head)
        expected = forms.expected(calls[head].kernel) if head >= 0 else None
        if expected is not None:
            expected(tracer, columns[head])
        elif head >= 0 and _is_told_by_phases(calls[head]):
            scratch += _expect_phases(tracer, calls[head], at_hand, specs)
    return scratch


def chosen(calls: list[Call], launches: list[Launch]) -> list[tuple | None]:
    """What companions have compiled in, which `expect` has checked for later batches: a plan has to be made of the
    same. For smaller samples a companion may choose less, which is not enough for others that pass the checks. Bytes of
    scratch memory follow from that, or from the grid."""
    return [
        None if x.only_time else (x.source, tuple(map(int, x.block)), int(x.shared), x.zero)
        for x in launches
        if _is_told_by_phases(calls[x.calls[0]])
    ]


def _is_told_by_phases(head: Call) -> bool:
    return forms.form_of(head.kernel, len(head.ins)) in ("own", "block") and forms.expected(head.kernel) is None


def _expect_phases(tracer: Tracer, call: Call, at_hand: list[Spec], specs: list[Spec]) -> list[Any]:
    """Has the companion of a head plan once more, traced: what it decides by and compiles in is checked."""

    outs, ins = ([specs[t] for t in of] for of in (call.outs, call.ins))
    kind = head_kind(call, at_hand)
    scratch, args = [], None if call.args is None else tracer.of_memory(call.args)
    for p in forms.companion(call.kernel)(Task(call._replace(args=args), outs, ins, outs[0], kind, kind, outs[0].n)):
        for number in (*p.block, p.shared, p.scratch if p.zero else 0):
            int(number)
        if 0 in p.grid:
            raise Untraceable("there is nothing to do")
        if not p.zero and not is_constant(p.scratch):
            scratch.append(p.scratch)
    return scratch


def _expect_tensor(tracer: Tracer, s: Spec) -> None:
    axis = s.axis("C")
    if axis >= 0 and s.ndim > 1:
        channels = s.stored[:, axis]
        if not (channels == channels[0]).all() or channels[0] < 1:
            raise OddBatch("samples have different channels")
        tracer.expect(channels)
    if not tracer.call("volumes_below", s.stored, s.n, s.ndim, _LARGEST):
        raise OddBatch("a sample is very large")


def _expect_arguments(tracer: Tracer, call: Call, columns: dict[str, Any], specs: list[Spec], is_head: bool) -> None:
    def given(name: str) -> np.ndarray | None:
        column = columns.get(name)
        return None if is_constant(column) else column

    said = forms.described(call.kernel)
    for name in said.choosing:
        column = given(name)
        if column is not None:
            for part in column.T if column.ndim > 1 else (column,):
                tracer.expect(part)
    axis = specs[call.ins[0]].axis("C") if call.ins and not is_head else -1
    for name in (said.begin, said.begin_minus):
        column = given(name)
        if axis >= 0 and column is not None:
            tracer.expect(column[:, axis])
