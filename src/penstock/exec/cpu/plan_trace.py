# SPDX-License-Identifier: Apache-2.0
"""The rules of operators, traced for a batch (core/tracing.py), and the program that comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as part
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.batch import Batch, Spec
from ...core.program import CONSTANT, RESULT, Pointer, Program, Value, View
from ...core.rng import Random
from ...core.rows import TENSOR, ArgumentRows, TensorRows
from ...core.traced import Untraceable, is_constant, plain
from ...core.tracing import Tracer
from ..context import Context
from .wiring import Edge

if TYPE_CHECKING:
    from ...core.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Extents:
    """What a plan says of the batch of an edge: the extents that are stored lie in the memory of a value, or are
    constant."""

    stored: View | np.ndarray
    dtype: np.dtype
    layout: str


@dataclass(eq=False)
class TracedPlan:
    """What comes of tracing: a program, and what its values are for. `ForAnyNumber` of samples is made of three."""

    program: Program = Program((), ())
    constants: dict[int, np.ndarray] = part(default_factory=dict)  # by the number of the value
    inputs: dict[Edge, Value] = part(default_factory=dict)  # where the addresses of the rows of inputs are put
    columns: list[tuple[Any, str, Value]] = part(default_factory=list)  # data: of which resolver, names of arguments
    peeked: dict[Edge, Value] = part(default_factory=dict)  # inputs that rules look into
    places: list[Value] = part(default_factory=list)  # epochs and positions of the samples
    sample_of: list[Value] = part(default_factory=list)  # the sample of each row, where rows are frames
    # Of each kernel: the rows of arguments, and the fields that are constant; what pointers refer to may be views.
    kernels: list[Kernel] = part(default_factory=list)
    arguments: list[Value] = part(default_factory=list)
    constant_fields: list[dict[str, Any]] = part(default_factory=list)
    # As in PlanMemory.
    specs: dict[Edge, Extents] = part(default_factory=dict)
    shapes: dict[Edge, Value | None] = part(default_factory=dict)  # None: they are constant
    rows: dict[Edge, Value] = part(default_factory=dict)
    about: dict[Edge, Value] = part(default_factory=dict)
    views: dict[Edge, Value] = part(default_factory=dict)
    more: dict[str, list[View | np.ndarray]] = part(default_factory=dict)
    compiled_in: Any = None


class PlanTrace(Tracer):
    """The program of one plan, while its rules are traced: filled as a PlanMemory is, with columns."""

    def __init__(self) -> None:
        super().__init__()
        self.plan = TracedPlan()
        self.rows: dict[Edge, Any] = {}
        self.about: dict[Edge, Any] = {}
        self.views: dict[Edge, Any] = {}
        self.more: dict[str, list[Any]] = {}
        self.launches: Any = None
        self.compiled_in: Any = None
        self._drawn: tuple[Any, Any] | None = None
        self._sample_of: Any = None

    def close(self) -> None:
        """Lets go of columns, which refer to this: nothing is left to Python's collector of cycles."""
        vars(self).clear()

    def take_in(self, e: Edge, batch: Batch) -> Batch:
        """The same batch, with a traced shape and rows that are the program's."""
        spec = batch.spec
        rows = self.store(np.zeros(spec.n, TENSOR), RESULT, f"rows of edge {e[0]}.{e[1]}")
        shape, at_shape = self.allocate((spec.n, spec.ndim), np.dtype("i8"))
        _, column = self.input(np.array([batch.rows_address], "u8"), f"address of the rows of edge {e[0]}.{e[1]}")
        self.plan.inputs[e], self.rows[e] = column.value, rows
        self.call("take_in", column, spec.n, spec.ndim, Pointer(rows.value), at_shape)
        return Batch(self.whole(Spec(shape, spec.dtype, spec.layout)), rows.array, batch.owners, batch.sources)

    def whole(self, spec: Spec) -> Spec:
        """The same; rules may compute with constant shapes, too, and with where samples begin."""
        traced = Spec(self.constant(spec.shape), spec.dtype, spec.layout, self.constant(spec.origin))
        if spec.stored is not spec.shape:
            traced.stored = self.constant(spec.stored)
        return traced

    def argument(self, resolver: Any, name: str, column: np.ndarray) -> Any:
        """A column of data."""
        _, traced = self.input(column, f"argument '{name}' of {resolver.node.name}")
        self.plan.columns.append((resolver, name, traced.value))
        return traced

    def contents(self, e: Edge, batch: Batch) -> Any:
        """All samples of an input that a rule looks into."""
        if not batch.on_host:
            raise Untraceable("it looks into an input on the GPU")
        _, column = self.input(contents_of(batch), f"contents of edge {e[0]}.{e[1]}")
        self.plan.peeked[e] = column.value
        return column

    def random(self, random: Random) -> Random:
        """The same numbers, from traced epochs and positions."""
        if self._drawn is None:
            epoch, position = random.epoch.astype("u4"), random.position.astype("u8")
            self._drawn = self.input(epoch, "epochs")[1], self.input(position, "positions")[1]
            self.plan.places = [x.value for x in self._drawn]
        return Random(random.key, *self._drawn)

    def sample_of(self, ctx: Context) -> Any:
        """The sample of each row, where rows are frames; else None."""
        if self._sample_of is None and ctx.frames is not None:
            _, self._sample_of = self.input(ctx.frames.sample_of, "samples of the frames")
            self.plan.sample_of = [self._sample_of.value]
        return self._sample_of

    def fill_rows(self, kernel: Kernel, n: int, columns: Mapping[str, Any], name: str) -> Any:
        """Has the program fill the rows of arguments of a kernel."""
        made = ArgumentRows(n, kernel.args, kernel.pointers)
        rows = self.store(made.array, RESULT, f"arguments of {name}")
        constant = {
            field: self.settled(x) if field in kernel.pointers else plain(x)
            for field, x in columns.items()
            if field in kernel.pointers or is_constant(x)
        }
        made.fill({field: self.values(x) for field, x in constant.items()})
        for field, x in columns.items():
            if field not in constant:
                to = rows[field]
                to = to if x.ndim < 2 or to.ndim < 2 else to[:, : x.shape[1]]
                to[...] = x
        self.plan.kernels.append(kernel)
        self.plan.arguments.append(rows.value)
        self.plan.constant_fields.append(constant)
        return rows

    def described(self, e: Edge, spec: Spec) -> None:
        """Has the program write rows of tensors of which nothing but extents and types is known."""
        tensors = TensorRows(spec.n).describe(plain(spec.stored), spec.dtype)
        self.plan.shapes[e] = None
        if not is_constant(spec.stored):
            rows = self.store(tensors.array, RESULT, f"shapes of edge {e[0]}.{e[1]}")
            rows["shape"][:, : spec.ndim] = spec.stored
            self.plan.shapes[e] = rows.value

    def settled(self, column: Any) -> View | np.ndarray:
        """Where a column lies for every batch, in row-major order; a constant itself."""
        if is_constant(column):
            return np.ascontiguousarray(plain(column))
        return self._view(self.contiguous(column))

    def values(self, x: Any) -> Any:
        """Of the batch at hand."""
        return values_of_view(x, self._memory[x.value.number]) if isinstance(x, View) else x

    def traced(self, specs: Mapping[Edge, Spec]) -> TracedPlan:
        """What came of it, if native code computes what NumPy does. Raises Untraceable."""
        plan = self.plan
        plan.specs = {e: Extents(self.settled(s.stored), s.dtype, s.layout) for e, s in specs.items()}
        plan.more = {name: [*map(self.settled, of)] for name, of in self.more.items()}
        plan.compiled_in = self.compiled_in
        for to, columns in ((plan.rows, self.rows), (plan.about, self.about), (plan.views, self.views)):
            to.update((e, x.value) for e, x in columns.items())
        program = plan.program = self.runnable().program
        plan.constants = {v.number: self._memory[v.number] for v in program.values if v.kind == CONSTANT}
        return plan


def values_of_view(view: View, memory: np.ndarray) -> np.ndarray:
    if not view.size:
        return np.zeros(view.shape, view.dtype)
    return np.ndarray(view.shape, view.dtype, memory.data, view.offset, view.strides)


def contents_of(batch: Batch) -> np.ndarray:
    """As `Batch.array`, by which the rows that a program reads would change."""
    packed = batch.is_packed or not batch.spec.is_dense
    return batch.array() if packed else np.stack([batch.sample(i) for i in range(len(batch))])


class TracedBatch(Batch):
    """An input that a rule may look into while it is traced; `seen` is what `PlanTrace.take_in` gave for the batch."""

    __slots__ = ("_load",)

    def __init__(self, trace: PlanTrace, e: Edge, batch: Batch, seen: Batch):
        super().__init__(seen.spec, None, (), batch.sources)
        self._load = trace, e, batch

    @property
    def rows(self) -> Any:
        trace, e, _ = self._load
        return trace.rows[e]

    @property  # type: ignore[misc]
    def rows_address(self) -> Any:
        """For native code."""
        return Pointer(self._load[0].rows[self._load[1]].value)

    def array(self) -> np.ndarray:
        if self._array is None:
            trace, e, batch = self._load
            self._array = trace.contents(e, batch)
        return self._array

    def sample(self, i: int) -> np.ndarray:
        raise Untraceable("it looks into samples one by one")
