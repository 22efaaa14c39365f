# SPDX-License-Identifier: Apache-2.0
"""The arrays that a plan consists of: filled by rules, for one batch, or written by a program, for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.batch import Spec
from ...core.kernels import Kernel
from ...core.program import CONSTANT, Runnable, Value, View
from ...core.rows import ArgumentRows, TensorRows
from ...core.sizes import ForAnyNumber
from ..context import Context
from .plan_trace import TracedPlan, contents_of, values_of_view
from .wiring import Edge


class PlanMemory:
    """By edge: `specs`; `shapes`, rows of tensors that are in no memory; `rows` of all other tensors that somebody
    reads. On the GPU also `about`, (2,) the bytes of what is made here and whether all samples have one shape, and
    `views`, rows of batches that are seen in the memory of others. Data of inputs are addresses, other data distances
    from the memory of what is made here. By kernel: rows of `arguments`, and the arrays behind their `pointers`."""

    def __init__(self, alive: Any = None) -> None:
        """`alive` is what has to be kept, as rules put addresses of arrays into arguments."""
        self.alive = alive
        self.specs: Mapping[Edge, Spec] = {}
        self.shapes: dict[Edge, TensorRows] = {}
        self.rows: dict[Edge, Any] = {}
        self.about: dict[Edge, Any] = {}
        self.views: dict[Edge, Any] = {}
        self.kernels: list[Kernel] = []
        self.arguments: list[ArgumentRows] = []
        self.pointers: list[dict[str, np.ndarray]] = []
        self.launches: Any = None  # on the GPU; None if they follow from the rest
        self.more: dict[str, list[np.ndarray]] = {}  # what else is asked for
        self.compiled_in: Any = None  # of a program: what launches have to have in common

    def fill_rows(self, kernel: Kernel, n: int, columns: Mapping[str, Any], name: str) -> np.ndarray:
        """Adds a kernel with its rows of arguments."""
        rows = ArgumentRows(n, kernel.args, kernel.pointers)
        pointers = {field: np.ascontiguousarray(columns[field]) for field in kernel.pointers & columns.keys()}
        rows.fill({**columns, **pointers})
        self.kernels.append(kernel)
        self.arguments.append(rows)
        self.pointers.append(pointers)
        return rows.array

    def described(self, e: Edge, spec: Spec) -> None:
        """Adds rows of tensors of which nothing but extents and types is known."""
        self.shapes[e] = TensorRows(spec.n).describe(spec.stored, spec.dtype)


class RulesPlan(NamedTuple):
    """A plan `made` by rules for one batch, as a BoundPlan is by a program."""

    at: PlanMemory
    made: Any


class BoundPlan:
    """A program of a kind of batches, for `n` samples, with memory of its own, `at`. `made` is the plan in that memory.
    Used by one batch at a time."""

    def __init__(self, program: ForAnyNumber[TracedPlan], kind: tuple, n: int):
        self.program, self.kind, self.n = program, kind, n
        self.made: Any = None
        plan, self.at = program.of(n), PlanMemory()
        at, constants = self.at, plan.constants
        self._memory = memory = [
            constants[v.number] if v.kind == CONSTANT else np.zeros(v.shape, v.dtype) for v in plan.program.values
        ]
        at.specs = {e: Spec(self.array(x.stored), x.dtype, x.layout) for e, x in plan.specs.items()}
        for e, value in plan.shapes.items():
            at.described(e, at.specs[e])
            if value is not None:
                memory[value.number] = at.shapes[e].array
        at.kernels, at.compiled_in = plan.kernels, plan.compiled_in
        for kernel, value, fields in zip(plan.kernels, plan.arguments, plan.constant_fields):
            rows = ArgumentRows(value.shape[0], kernel.args, kernel.pointers)
            constant = {field: self.array(x) for field, x in fields.items()}
            rows.fill(constant)
            memory[value.number] = rows.array
            at.arguments.append(rows)
            at.pointers.append({field: constant[field] for field in kernel.pointers & constant.keys()})
        at.rows, at.about, at.views = (
            {e: memory[v.number] for e, v in of.items()} for of in (plan.rows, plan.about, plan.views)
        )
        at.more = {name: [*map(self.array, of)] for name, of in plan.more.items()}
        self._runnable = Runnable(plan.program, memory)
        self._inputs = [(e, memory[v.number]) for e, v in plan.inputs.items()]
        self._columns = [(resolver, name, memory[v.number]) for resolver, name, v in plan.columns]
        self._peeked = [(e, memory[v.number]) for e, v in plan.peeked.items()]
        self._places = [memory[v.number] for v in plan.places]
        self._sample_of = [memory[v.number] for v in plan.sample_of]

    def array(self, x: Value | View | np.ndarray) -> np.ndarray:
        """The memory of a value, or of a view of one."""
        if isinstance(x, Value):
            return self._memory[x.number]
        return values_of_view(x, self._memory[x.value.number]) if isinstance(x, View) else x

    def run(self, ctx: Context) -> bool:
        """Runs the program for a batch; says whether its checks hold."""
        values = ctx.values
        for e, place in self._inputs:
            place[0] = values[e].rows_address
        for resolver, name, memory in self._columns:
            try:
                column = resolver.column(name, ctx.n, values)
            except ValueError:  # which the rules raise with an explanation
                return False
            if column.shape != memory.shape or column.dtype != memory.dtype:
                return False
            memory[...] = column
        for e, memory in self._peeked:
            if not values[e].on_host or not values[e].spec.is_dense:
                return False
            array = contents_of(values[e])
            if array.shape != memory.shape or array.dtype != memory.dtype:
                return False
            memory[...] = array
        for place, of in zip(self._places, (ctx.epoch, ctx.position)):
            place[...] = of
        for place in self._sample_of:
            place[...] = ctx.frames.sample_of  # type: ignore[union-attr]
        return self._runnable.run()
