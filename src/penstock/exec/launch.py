# SPDX-License-Identifier: Apache-2.0
"""What a segment of a chain hands to the native side: kept from one batch to the next, so that only what has changed is
written again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.batch import Spec
from ..core.kernels import Kernel, Outcome, Pool, Program, Step
from ..core.rows import ArgumentRows, TensorRows

if TYPE_CHECKING:
    import numpy as np

    from .wiring import Edge, Wiring

_KEPT_SIZES = 16  # numbers of rows (and kernels) that launches are kept for
_KEPT_EACH = 4


class Launch:
    """The steps of a segment for a number of rows: a kernel with argument rows for each, and the rows of its tensors.
    Those of batches are put in by `run`, the others belong to the launch. Used by one run at a time."""

    def __init__(self, wiring: Wiring, kernels: Sequence[Kernel], n_rows: int):
        self.arguments = [ArgumentRows(n_rows, k.args, k.pointers) for k in kernels]
        self._tensors: dict[Edge, TensorRows] = {e: TensorRows(n_rows) for e in wiring.unkept}
        steps = []
        for node, kernel, arguments in zip(wiring.native, kernels, self.arguments):
            outs, ins = (
                [(self._tensors[e].array if e in self._tensors else None, buffer) for e, buffer in slots]
                for slots in wiring.slots[node.number]
            )
            steps.append(Step(kernel, arguments.array, outs, ins))
        self._program = Program(steps, n_rows)
        edges = [[e for slots in wiring.slots[n.number] for e, _ in slots] for n in wiring.native]
        self._of_batches = [
            (slot, e)
            for of_step, names in zip(self._program.slots, edges)
            for slot, e in zip(of_step, names)
            if e not in self._tensors
        ]
        self._views = wiring.views

    def run(
        self,
        pool: Pool,
        outcome: Outcome,
        specs: dict[Edge, Spec],
        rows: dict[Edge, np.ndarray],
        places: dict[Edge, int],
        sample_of: np.ndarray | None,
    ) -> None:
        """`specs` are those of all edges, `rows` the tensors' rows of those that are batches, `places` their
        addresses."""
        for e, tensors in self._tensors.items():
            spec = specs[e]
            tensors.describe(spec.stored, spec.dtype)
        for e, root in self._views:
            self._tensors[e].data[...] = rows[root]["data"]
        for slot, e in self._of_batches:
            slot.rows = places[e]
        self._program.run(pool, outcome, sample_of)


class Launches:
    """The launches of one wiring that are not in use."""

    def __init__(self, wiring: Wiring):
        self._wiring = wiring
        self._idle: dict[tuple, list[Launch]] = {}

    def take(self, kernels: tuple[Kernel, ...], n_rows: int) -> Launch:
        idle = self._idle.get((n_rows, kernels))
        try:
            return idle.pop()  # type: ignore[union-attr]
        except (AttributeError, IndexError):
            return Launch(self._wiring, kernels, n_rows)

    def give(self, kernels: tuple[Kernel, ...], n_rows: int, launch: Launch) -> None:
        idle = self._idle.get((n_rows, kernels))
        if idle is None:
            if len(self._idle) >= _KEPT_SIZES:
                return
            idle = self._idle.setdefault((n_rows, kernels), [])
        if len(idle) < _KEPT_EACH:
            idle.append(launch)
