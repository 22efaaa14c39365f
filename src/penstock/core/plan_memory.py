# SPDX-License-Identifier: Apache-2.0
"""The arrays that a plan consists of. Rules fill them for one batch. While rules are traced (core/tracing.py) they fill
them with columns, and the program that comes of it fills the same arrays for the batches that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from .batch import Batch, Spec
from .kernels import Kernel
from .op import Arguments
from .program import COMPUTED, Pointer, Program
from .rng import Random
from .rows import TENSOR, ArgumentRows, TensorRows
from .traced import Untraceable, is_constant, plain
from .tracing import IMMEDIATE, Native, Tracer

Edge = tuple[int, int]


class BatchContext(Protocol):
    """What plans read of a batch of `n` rows: their epochs and positions, the batches computed so far, and, where rows
    are frames, the `sample_of` each (exec/context.py)."""

    n: int
    epoch: np.ndarray
    position: np.ndarray
    values: dict[Edge, Batch]
    frames: Any


class PlanMemory:
    """By edge: `specs`; `shapes`, rows of tensors that are in no memory; `rows` of all other tensors that somebody
    reads. On the GPU also `about`, (2,) the bytes of what is made here and whether all samples have one shape, and
    `views`, rows of batches that are seen in the memory of others. Data of inputs are addresses, other data distances
    from the memory of what is made here. By kernel: rows of `arguments`, and the arrays behind their `pointers`."""

    native: Native = IMMEDIATE

    def __init__(self) -> None:
        self.specs: Mapping[Edge, Spec] = {}
        self.shapes: dict[Edge, TensorRows] = {}
        self.rows: dict[Edge, Any] = {}
        self.about: dict[Edge, Any] = {}
        self.views: dict[Edge, Any] = {}
        self.kernels: list[Kernel] = []
        self.arguments: list[ArgumentRows] = []
        self.pointers: list[dict[str, np.ndarray]] = []
        self.launches: Sequence[Any] = ()  # on the GPU
        self.more: dict[str, Any] = {}  # columns that somebody else asks for
        self.made: Any = None  # the plan of the device, which is these arrays and what doesn't change
        self.alive: Any = None  # what has to be kept, as rules put addresses of arrays into arguments

    # What rules read: as it is, or traced ---------------------------------------------------------------------------

    def take_in(self, e: Edge, batch: Batch) -> Batch:
        """An input of the plan."""
        return batch

    def read(self, a: Arguments, resolver: Any) -> None:
        """The arguments of an operator, of those that are data and random numbers."""

    def sample_of(self, ctx: BatchContext) -> Any:
        """The sample of each row, where rows are frames; else None."""
        return _sample_of(ctx)

    def whole(self, spec: Spec) -> Spec:
        """What a rule says of an output."""
        return spec

    # What rules give -------------------------------------------------------------------------------------------------

    def fill_rows(self, kernel: Kernel, n: int, columns: Mapping[str, Any], name: str) -> Any:
        """Adds a kernel with its rows of arguments."""
        rows = ArgumentRows(n, kernel.args, kernel.pointers)
        pointers = {field: self.settled(columns[field]) for field in kernel.pointers & columns.keys()}
        rows.fill({field: pointers[field] if field in pointers else plain(x) for field, x in columns.items()})
        self.kernels.append(kernel)
        self.arguments.append(rows)
        self.pointers.append(pointers)
        return rows.array

    def described(self, e: Edge, spec: Spec) -> Any:
        """Adds rows of tensors of which nothing but extents and types is known."""
        self.shapes[e] = TensorRows(spec.n).describe(plain(spec.stored), spec.dtype)
        return self.shapes[e].array

    def settled(self, column: Any) -> np.ndarray:
        """Where a column lies for every batch, in row-major order."""
        return np.ascontiguousarray(plain(column)) if is_constant(column) else plain(self.native.contiguous(column))


class TracedPlan(PlanMemory):
    """A plan whose rules are traced for a batch of a `kind`; `finish` makes the program of it, and `refill` runs that
    for other batches of the kind with as many rows. Used by one batch at a time."""

    native: Tracer

    def __init__(self, kind: tuple, n: int):
        super().__init__()
        self.kind, self.n = kind, n
        self.native = Tracer()
        self.program: Program | None = None
        self._inputs: list[tuple[Edge, np.ndarray]] = []  # where the addresses of the rows of inputs are put
        # What else is put in for each batch: where, and what gives it, or None if the program is of no use.
        self._given: list[tuple[np.ndarray, Callable[[BatchContext], np.ndarray | None]]] = []
        self._drawn: tuple[Any, Any] | None = None
        self._sample_of: Any = None

    def take_in(self, e: Edge, batch: Batch) -> Batch:
        native, spec = self.native, batch.spec
        rows = native.store(np.zeros(spec.n, TENSOR), COMPUTED, f"rows of edge {e[0]}.{e[1]}")
        shape, at_shape = native.allocate((spec.n, spec.ndim), np.dtype("i8"))
        place, column = native.input(np.array([batch.rows_address], "u8"), f"address of the rows of edge {e[0]}.{e[1]}")
        self._inputs.append((e, place))
        native.call("take_in", column, spec.n, spec.ndim, Pointer(rows.value), at_shape)
        return TracedBatch(self, e, batch, self.whole(Spec(shape, spec.dtype, spec.layout)), rows)

    def read(self, a: Arguments, resolver: Any) -> None:
        for name in resolver.node.args:
            if name in a.row_lengths:
                raise Untraceable(f"'{name}' has vectors of different lengths")
            given = partial(_column, resolver, name)
            setattr(a, name, self._input(getattr(a, name), f"argument '{name}' of {resolver.node.name}", given))
        if "seed" in resolver.node.op.schema:
            a.random = Random(a.random.key, *self._places(a.random))

    def sample_of(self, ctx: BatchContext) -> Any:
        if self._sample_of is None and ctx.frames is not None:
            self._sample_of = self._input(ctx.frames.sample_of, "samples of the frames", _sample_of)
        return self._sample_of

    def whole(self, spec: Spec) -> Spec:
        """The same; rules may compute with constant shapes, too, and with where samples begin."""
        constant = self.native.constant
        traced = Spec(constant(spec.shape), spec.dtype, spec.layout, constant(spec.origin))
        if spec.stored is not spec.shape:
            traced.stored = constant(spec.stored)
        return traced

    def contents(self, e: Edge, batch: Batch) -> Any:
        """All samples of an input that a rule looks into."""
        if not batch.on_host:
            raise Untraceable("it looks into an input on the GPU")
        return self._input(_contents_of(batch), f"contents of edge {e[0]}.{e[1]}", lambda ctx: _contents(ctx, e))

    def _places(self, random: Random) -> tuple[Any, Any]:
        """Epochs and positions of the samples, by which random numbers are drawn."""
        if self._drawn is None:
            self._drawn = (
                self._input(random.epoch.astype("u4"), "epochs", lambda ctx: ctx.epoch),
                self._input(random.position.astype("u8"), "positions", lambda ctx: ctx.position),
            )
        return self._drawn

    def _input(self, array: np.ndarray, name: str, given: Callable[[BatchContext], np.ndarray | None]) -> Any:
        """A column that is `given` for each batch."""
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

    def described(self, e: Edge, spec: Spec) -> Any:
        array = super().described(e, spec)
        if not is_constant(spec.stored):
            rows = self.native.store(array, COMPUTED, f"shapes of edge {e[0]}.{e[1]}")
            rows["shape"][:, : spec.ndim] = spec.stored
        return array

    def finish(self) -> None:
        """Makes the program, and lets go of columns, which refer to the batch. Raises Untraceable."""
        self.specs = {e: Spec(self.settled(s.stored), s.dtype, s.layout) for e, s in self.specs.items()}
        self.more = {name: [*map(self.settled, of)] for name, of in self.more.items()}
        self.rows, self.about, self.views = (
            {e: plain(x) for e, x in of.items()} for of in (self.rows, self.about, self.views)
        )
        self.program = self.native.program()
        self.alive = self._drawn = self._sample_of = None
        del self.native

    def refill(self, ctx: BatchContext) -> bool:
        """Runs the program for a batch; says whether its checks hold."""
        assert self.program is not None
        for e, place in self._inputs:
            place[0] = ctx.values[e].rows_address
        for memory, given in self._given:
            try:
                array = given(ctx)
            except ValueError:  # which the rules raise with an explanation
                return False
            if array is None or array.shape != memory.shape:
                return False
            memory[...] = array
        return self.program.run()


class TracedBatch(Batch):
    """An input of a traced plan, which rules may look into."""

    __slots__ = ("_load", "_traced_rows")

    def __init__(self, plan: TracedPlan, e: Edge, batch: Batch, spec: Spec, rows: Any):
        super().__init__(spec, rows, (), batch.sources)
        self._load, self._traced_rows = (plan, e, batch), rows

    @property  # type: ignore[misc]
    def rows_address(self) -> Any:
        """For native code."""
        return Pointer(self._traced_rows.value)

    def array(self) -> np.ndarray:
        if self._array is None:
            plan, e, batch = self._load
            self._array = plan.contents(e, batch)
        return self._array

    def sample(self, i: int) -> np.ndarray:
        raise Untraceable("it looks into samples one by one")


def _sample_of(ctx: BatchContext) -> np.ndarray | None:
    return None if ctx.frames is None else ctx.frames.sample_of


def _column(resolver: Any, name: str, ctx: BatchContext) -> np.ndarray:
    return resolver.column(name, ctx.n, ctx.values)


def _contents(ctx: BatchContext, e: Edge) -> np.ndarray | None:
    batch = ctx.values[e]
    return _contents_of(batch) if batch.on_host and batch.spec.is_dense else None


def _contents_of(batch: Batch) -> np.ndarray:
    """As `Batch.array`, by which the rows that a program reads would change."""
    packed = batch.is_packed or not batch.spec.is_dense
    return batch.array() if packed else np.stack([batch.sample(i) for i in range(len(batch))])
