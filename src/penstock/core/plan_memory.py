# SPDX-License-Identifier: Apache-2.0
"""The arrays that make up a plan. Rules fill them for one batch. While rules are traced (core/tracing.py), they assign
columns to them, and the resulting program fills the same arrays for later batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from .batch import Batch, Spec
from .kernels import Kernel
from .op import Arguments
from .program import COMPUTED, Program, View
from .rng import Random
from .rows import TENSOR, ArgumentRows
from .traced import Untraceable, is_constant, plain
from .tracing import IMMEDIATE, Native, Tracer

Edge = tuple[int, int]  # of the graph: a node's number, and the index of one of its outputs


class BatchContext(Protocol):
    """What plans read of a batch of `n` rows: epochs and positions, the batches computed so far, and the sample of each
    row if rows are frames (exec/context.py)."""

    n: int
    epoch: np.ndarray
    position: np.ndarray
    values: dict[Edge, Batch]
    sample_of: np.ndarray | None


class PlanMemory:
    """By edge: `specs`; `rows`, tensor rows of all that kernels read or make; `about`, (2,), of those made: the size in
    bytes, and whether all samples have one shape. In rows of inputs, `data` is an address; in other rows, an offset
    into the memory of the tensor, if it has any. By kernel: rows of `arguments`, and the arrays behind their
    `pointers`."""

    native: Native = IMMEDIATE

    def __init__(self) -> None:
        self.specs: Mapping[Edge, Spec] = {}
        self.rows: dict[Edge, Any] = {}
        self.about: dict[Edge, Any] = {}
        self.kernels: list[Kernel] = []
        self.arguments: list[ArgumentRows] = []
        self.pointers: list[dict[str, np.ndarray]] = []
        self.launches: Sequence[Any] = ()  # GPU only
        self.more: dict[str, Any] = {}  # further columns requested by other code
        self.made: Any = None  # the device's plan: these arrays and constant data
        # Bytes and spec of each output of the current batch; kept for successive batches of the same shapes.
        self.placed: list[tuple[int, Spec]] = []
        self.alive: Any = None  # objects kept alive because argument rows contain their addresses

    # Inputs of the rules, plain or traced
    # ------------------------------------------------------------------------------

    def take_in(self, e: Edge, batch: Batch) -> Batch:
        """Adds an input of the plan."""
        return batch

    def read(self, a: Arguments, resolver: Any) -> None:
        """Replaces the arguments that are data, and the random numbers, by traced columns."""

    def sample_of(self, ctx: BatchContext) -> Any:
        """The sample of each row if rows are frames; else None."""
        return ctx.sample_of

    def whole(self, spec: Spec) -> Spec:
        """Prepares the spec that a rule returned for an output."""
        return spec

    # Outputs of the rules
    # -----------------------------------------------------------------------------------------------

    def fill_rows(self, kernel: Kernel, n: int, columns: Mapping[str, Any], name: str) -> Any:
        """Adds a kernel and its argument rows."""
        rows = ArgumentRows(n, kernel.args, kernel.pointers)
        pointers = {field: self.settled(columns[field]) for field in kernel.pointers & columns.keys()}
        rows.fill({field: pointers[field] if field in pointers else plain(x) for field, x in columns.items()})
        self.kernels.append(kernel)
        self.arguments.append(rows)
        self.pointers.append(pointers)
        return rows.array

    def settled(self, column: Any) -> np.ndarray:
        """The row-major array that holds a column for every batch."""
        return np.ascontiguousarray(plain(column)) if is_constant(column) else plain(self.native.contiguous(column))


class TracedPlan(PlanMemory):
    """A plan whose rules are traced for a batch of a `kind`. `finish` makes its program; `refill` runs it for other
    batches of the same kind and number of rows. Used by one batch at a time."""

    native: Tracer

    def __init__(self, kind: tuple, n: int):
        super().__init__()
        self.kind, self.n = kind, n
        self.native = Tracer()
        self.program: Program | None = None
        self._keeps_shapes = False  # whether batches of the same shapes have outputs of the same shapes
        self._inputs: list[tuple[Edge, np.ndarray]] = []  # where the row addresses of inputs are written
        # Other inputs to write for each batch: the array, and a function that returns its values, or None if the
        # program can't be used.
        self._given: list[tuple[np.ndarray, Callable[[BatchContext], np.ndarray | None]]] = []
        self._shared: dict[str, Any] = {}  # inputs of several operators

    def take_in(self, e: Edge, batch: Batch) -> Batch:
        native, spec = self.native, batch.spec
        rows = native.store(np.zeros(spec.n, TENSOR), COMPUTED, f"rows of edge {e[0]}.{e[1]}")
        shape, _ = native.allocate((spec.n, spec.ndim), np.dtype("i8"))
        place, column = native.input(np.array([batch.rows_address], "u8"), f"address of the rows of edge {e[0]}.{e[1]}")
        self._inputs.append((e, place))
        native.take_in(column, rows, shape)
        return TracedBatch(self, e, batch, self.whole(Spec(shape, spec.dtype, spec.layout)), rows)

    def read(self, a: Arguments, resolver: Any) -> None:
        for name in resolver.node.args:
            if name in a.row_lengths:
                raise Untraceable(f"'{name}' has vectors of different lengths")
            given = partial(_column, resolver, name)
            setattr(a, name, self.input(getattr(a, name), f"argument '{name}' of {resolver.node.name}", given))
        if "seed" in resolver.node.op.schema:
            epoch, position = a.random.epoch.astype("u4"), a.random.position.astype("u8")
            epochs = self._once(epoch, "epochs", lambda ctx: ctx.epoch)
            a.random = Random(a.random.key, epochs, self._once(position, "positions", lambda ctx: ctx.position))

    def sample_of(self, ctx: BatchContext) -> Any:
        rows = ctx.sample_of
        return None if rows is None else self._once(rows, "samples of the frames", lambda ctx: ctx.sample_of)

    def whole(self, spec: Spec) -> Spec:
        """Makes the spec's shapes, constant ones too, and origins usable in traced computations."""
        constant = self.native.constant
        traced = Spec(constant(spec.shape), spec.dtype, spec.layout, constant(spec.origin))
        if spec.stored is not spec.shape:
            traced.stored = constant(spec.stored)
        return traced

    def _once(self, array: np.ndarray, name: str, given: Callable[[BatchContext], np.ndarray | None]) -> Any:
        if name not in self._shared:
            self._shared[name] = self.input(array, name, given)
        return self._shared[name]

    def input(self, array: np.ndarray, name: str, given: Callable[[BatchContext], np.ndarray | None]) -> Any:
        """A column whose values `given` returns for each batch."""
        memory, column = self.native.input(array, name)
        self._given.append((memory, given))
        return column

    def fill_rows(self, kernel: Kernel, n: int, columns: Mapping[str, Any], name: str) -> Any:
        rows = self.native.store(super().fill_rows(kernel, n, columns, name), COMPUTED, f"arguments of {name}")
        for field, x in columns.items():
            if field not in kernel.pointers and not is_constant(x):
                to = rows[field]
                to = to if x.ndim < 2 or to.ndim < 2 else to[:, : x.shape[1]]
                to[...] = x
        return rows

    def finish(self) -> None:
        """Makes the program, and drops columns, which refer to the batch. Raises Untraceable."""
        stored = [s.stored for s in self.specs.values()]
        self.specs = {e: Spec(self.settled(s.stored), s.dtype, s.layout) for e, s in self.specs.items()}
        self.more = {name: [*map(self.settled, of)] for name, of in self.more.items()}
        self.rows, self.about = ({e: plain(x) for e, x in of.items()} for of in (self.rows, self.about))
        self.program = self.native.program()
        self._keeps_shapes = all(is_constant(x) or x.value not in self.program.varying for x in stored)
        self.alive = None
        del self.native, self._shared

    def refill(self, ctx: BatchContext) -> bool:
        """Runs the program for a batch; returns whether its checks passed."""
        assert self.program is not None
        for e, place in self._inputs:
            place[0] = ctx.values[e].rows_address
        for memory, given in self._given:
            try:
                array = given(ctx)
            except ValueError:  # the rules raise it again with an explanation
                return False
            if array is None or array.shape != memory.shape:
                return False
            memory[...] = array
        passed = self.program.run() is None
        if not (self._keeps_shapes and self.program.same_shapes):
            self.placed.clear()
        return passed


class TracedBatch(Batch):
    """An input of a traced plan, whose data rules may read."""

    __slots__ = ("_load",)

    def __init__(self, plan: TracedPlan, e: Edge, batch: Batch, spec: Spec, rows: Any):
        super().__init__(spec, rows, (), batch.sources)
        self._load = plan, e, batch
        self._rows_address: Any = View(rows.value, rows.array)

    def array(self) -> np.ndarray:
        if self._array is None:
            plan, e, batch = self._load
            if not batch.on_host:
                raise Untraceable("it looks into an input on the GPU")
            array, name = _contents_of(batch), f"contents of edge {e[0]}.{e[1]}"
            self._array = plan.input(array, name, lambda ctx: _contents(ctx, e))
        return self._array

    def sample(self, i: int) -> np.ndarray:
        raise Untraceable("it looks into samples one by one")


def _column(resolver: Any, name: str, ctx: BatchContext) -> np.ndarray:
    return resolver.column(name, ctx.n, ctx.values)


def _contents(ctx: BatchContext, e: Edge) -> np.ndarray | None:
    batch = ctx.values[e]
    return _contents_of(batch) if batch.on_host and batch.spec.is_dense else None


def _contents_of(batch: Batch) -> np.ndarray:
    """As `Batch.array`, but never changes the batch's rows, which the program reads."""
    packed = batch.is_packed or not batch.spec.is_dense
    return batch.array() if packed else np.stack([batch.sample(i) for i in range(len(batch))])
