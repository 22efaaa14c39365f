# SPDX-License-Identifier: Apache-2.0
"""What a segment of a chain hands to the native side: kept from one batch to the next, so that only what has changed is
written again."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.batch import Spec
from ...core.kernels import Kernel, Outcome, Pool, Program, Step
from ...core.rows import ArgumentRows, TensorRows
from ...graph.node import Node
from ..context import Context, Timing

if TYPE_CHECKING:
    import numpy as np

    from .wiring import Edge, Wiring

# Launches are kept for so many rows in total: the branches of conditionals have batches of many sizes, but small ones.
_KEPT_ROWS = 16384
_KEPT_EACH = 4


class Launch:
    """The steps of a segment for a number of rows: a kernel with argument rows for each, and the rows of its tensors.
    Those of batches are put in by `run`, the others belong to the launch. Used by one run at a time."""

    def __init__(
        self,
        wiring: Wiring,
        kernels: Sequence[Kernel],
        n_rows: int,
        arguments: Sequence[ArgumentRows] | None = None,
        tensors: Mapping[Edge, TensorRows] | None = None,
    ):
        """`arguments` and `tensors` are rows that are there already."""
        made = (ArgumentRows(n_rows, k.args, k.pointers) for k in kernels)
        self.arguments = list(made if arguments is None else arguments)
        self.tensors = {e: tensors[e] if tensors and e in tensors else TensorRows(n_rows) for e in wiring.unkept}
        steps = []
        for node, kernel, rows in zip(wiring.native, kernels, self.arguments):
            outs, ins = (
                [(self.tensors[e].array if e in self.tensors else None, buffer) for e, buffer in slots]
                for slots in wiring.slots[node.number]
            )
            steps.append(Step(kernel, rows.array, outs, ins))
        self.program = Program(steps, n_rows)
        for step, slots, in_place in zip(steps, self.program.slots, wiring.in_place):
            if in_place and len(slots) > step.n_out:
                slots[step.n_out].in_place = True
        edges = [[e for slots in wiring.slots[n.number] for e, _ in slots] for n in wiring.native]
        self.of_batches = [
            (slot, e)
            for of_step, names in zip(self.program.slots, edges)
            for slot, e in zip(of_step, names)
            if e not in self.tensors
        ]
        self._views = wiring.views

    def prepare(self, specs: dict[Edge, Spec], rows: dict[Edge, np.ndarray], places: dict[Edge, int]) -> None:
        """`specs` are those of all edges, `rows` the tensors' rows of those that are batches, `places` their
        addresses."""
        for e, tensors in self.tensors.items():
            spec = specs[e]
            tensors.describe(spec.stored, spec.dtype)
        for e, root in self._views:
            if root in rows:
                self.tensors[e].data[...] = rows[root]["data"]
        for slot, e in self.of_batches:
            slot.rows = places.get(e, 0)


def execute(
    ctx: Context, nodes: list[Node], program: Program, pool: Pool, begin: int, sample_of: np.ndarray | None = None
) -> None:
    """Runs the steps, which are those of `nodes`, and notes which samples failed; the stage began at `begin`."""
    outcome = Outcome(ctx.status, program.n_rows, len(nodes))
    native = time.monotonic_ns()
    failed_before = ctx.status.copy() if ctx.failed else None
    program.run(pool, outcome, sample_of)
    ctx.timings.append(Timing("chain", [n.number for n in nodes], begin, time.monotonic_ns(), native, outcome))
    if outcome.failed:
        new = ctx.status != 0 if failed_before is None else (ctx.status != 0) & (failed_before == 0)
        for i in new.nonzero()[0].tolist():
            node = nodes[ctx.status[i] - 1]
            ctx.failed[i] = (node, outcome.reason(i), ctx.source_of(node, i))


class Launches:
    """The launches of one wiring that are not in use."""

    def __init__(self, wiring: Wiring):
        self._wiring: Wiring = weakref.proxy(wiring)  # whose these are
        self._idle: dict[tuple, list[Launch]] = {}
        self._rows = 0  # of the launches kept

    def take(self, kernels: tuple[Kernel, ...], n_rows: int) -> Launch:
        idle = self._idle.get((n_rows, kernels))
        try:
            return idle.pop()  # type: ignore[union-attr]
        except (AttributeError, IndexError):
            return Launch(self._wiring, kernels, n_rows)

    def give(self, kernels: tuple[Kernel, ...], n_rows: int, launch: Launch) -> None:
        idle = self._idle.get((n_rows, kernels))
        if idle is None:
            if self._rows > _KEPT_ROWS:
                return
            self._rows += _KEPT_EACH * n_rows
            idle = self._idle.setdefault((n_rows, kernels), [])
        if len(idle) < _KEPT_EACH:
            idle.append(launch)
