# SPDX-License-Identifier: Apache-2.0
"""The rules of a chain's operators, traced for a batch (core/tracing.py), and the program that comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.batch import Batch, Spec
from ...core.program import INPUT, RESULT, Pointer, Program, Value
from ...core.rng import Random
from ...core.rows import TENSOR, ArgumentRows, Unread
from ...core.traced import Untraceable, is_constant, plain
from ...core.tracing import Tracer
from ..context import Context
from .launch import Launch
from .wiring import Edge

if TYPE_CHECKING:
    from .chain import Link


class PlanTrace(Tracer):
    """The program of one segment, while its rules are traced."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[tuple[Edge, np.ndarray]] = []  # and where the address of its rows is put
        self.columns: list[tuple[Link, str, np.ndarray]] = []  # arguments that are data
        self.peeked: list[tuple[Edge, np.ndarray]] = []  # inputs that rules look into
        self.rows: dict[Edge, Value] = {}  # of the inputs
        self.kept: list[np.ndarray] = []  # what argument rows point to
        self.places: tuple[np.ndarray, np.ndarray] | None = None  # epochs and positions of the samples

    def take_in(self, e: Edge, batch: Batch) -> Batch:
        """The same batch, with a traced shape and rows that are the program's."""
        spec = batch.spec
        rows = self.store(np.zeros(spec.n, TENSOR), RESULT, f"rows of edge {e[0]}.{e[1]}")
        shape, at_shape = self.allocate((spec.n, spec.ndim), np.dtype("i8"))
        place, column = self.input(np.array([batch.rows_address], "u8"), f"address of the rows of edge {e[0]}.{e[1]}")
        self.inputs.append((e, place))
        self.rows[e] = rows.value
        self.call("take_in", column, spec.n, spec.ndim, Pointer(rows.value), at_shape)
        return Batch(self.whole(Spec(shape, spec.dtype, spec.layout)), rows.array, batch.owners, batch.sources)

    def whole(self, spec: Spec) -> Spec:
        """The same; rules may compute with constant shapes, too, and with where samples begin."""
        traced = Spec(self.constant(spec.shape), spec.dtype, spec.layout, self.constant(spec.origin))
        if spec.stored is not spec.shape:
            traced.stored = self.constant(spec.stored)
        return traced

    def argument(self, link: Link, name: str, column: np.ndarray) -> Any:
        """A column of data."""
        memory, traced = self.input(column, f"argument '{name}' of {link.node.name}")
        self.columns.append((link, name, memory))
        return traced

    def contents(self, e: Edge, batch: Batch) -> Any:
        """All samples of an input that a rule looks into."""
        if not batch.on_host:
            raise Untraceable("it looks into an input on the GPU")
        memory, column = self.input(_contents(batch), f"contents of edge {e[0]}.{e[1]}")
        self.peeked.append((e, memory))
        return column

    def random(self, random: Random) -> Random:
        """The same numbers, from traced epochs and positions."""
        if self.places is None:
            self.places = random.epoch.astype("u4"), random.position.astype("u8")
            for memory, name in zip(self.places, ("epochs", "positions")):
                self.store(memory, INPUT, name)
        return Random(random.key, *map(self.of_memory, self.places))

    def fill_rows(self, arguments: list[ArgumentRows], params: list[dict[str, Any]], names: list[str]) -> None:
        """Has the program fill the rows of arguments. What is left in `params` fills them for the batch at hand."""
        for rows, columns, name in zip(arguments, params, names):
            self.store(rows.array, RESULT, f"arguments of {name}")
            for field, column in columns.items():
                if type(column) is Unread:
                    self.unread(rows.views[field], column.values)
                    columns[field] = Unread(column.name, plain(column.values))
                elif field in rows.pointers:
                    columns[field] = np.ascontiguousarray(plain(self.contiguous(column)))
                    self.kept.append(columns[field])
                elif not is_constant(column):
                    to = rows.views[field]
                    to = to if column.ndim < 2 or to.ndim < 2 else to[:, : column.shape[1]]
                    self.assign(self.of_memory(to), column)
                columns[field] = plain(columns[field])

    def unread(self, to: np.ndarray, numbers: Any) -> None:
        """Has the program write numbers that are the batch's own to the rows of arguments."""
        signed = np.dtype(f"i{numbers.itemsize}")
        self.assign(self.of_memory(to).view(signed), numbers.view(signed))

    def described(self, launch: Launch, specs: dict[Edge, Spec]) -> None:
        """Has the program fill in the shapes of tensors."""
        for e, tensors in launch.tensors.items():
            if not is_constant(specs[e].stored):
                self.store(tensors.array, RESULT, f"shapes of edge {e[0]}.{e[1]}")
                self.assign(self.of_memory(tensors.shape[:, : specs[e].ndim]), specs[e].stored)

    def settled(self, spec: Spec) -> Spec:
        """Of the batch at hand; the extents stored lie where they will be for every batch, in row-major order."""
        stored = plain(self.contiguous(spec.stored))
        if spec.stored is spec.shape:
            return Spec(stored, spec.dtype, spec.layout)
        return Spec(plain(spec.shape), spec.dtype, spec.layout, plain(spec.origin), stored)


def _contents(batch: Batch) -> np.ndarray:
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
    def rows(self) -> np.ndarray:
        raise Untraceable("it computes with the addresses of samples")

    @property  # type: ignore[misc]
    def rows_address(self) -> Any:
        """For native code."""
        return Pointer(self._load[0].rows[self._load[1]])

    def array(self) -> np.ndarray:
        if self._array is None:
            trace, e, batch = self._load
            self._array = trace.contents(e, batch)
        return self._array

    def sample(self, i: int) -> np.ndarray:
        raise Untraceable("it looks into samples one by one")


class PlanProgram:
    """A program, the memory that it works on, and what it gets of a batch. Used by one batch at a time."""

    def __init__(self, trace: PlanTrace):
        self._inputs, self._columns, self._peeked = trace.inputs, trace.columns, trace.peeked
        self._places, self._kept = trace.places, trace.kept
        self._runnable = trace.runnable()

    @property
    def program(self) -> Program:
        return self._runnable.program

    def run(self, ctx: Context) -> bool:
        """Runs the program for a batch; says whether its checks hold."""
        values = ctx.values
        for e, place in self._inputs:
            place[0] = values[e].rows_address
        for link, name, memory in self._columns:
            try:
                column = link.resolver.column(name, ctx.n, values)
            except ValueError:  # which the rules raise with an explanation
                return False
            if column.shape != memory.shape or column.dtype != memory.dtype:
                return False
            memory[...] = column
        for e, memory in self._peeked:
            if not values[e].on_host or not values[e].spec.is_dense:
                return False
            array = _contents(values[e])
            if array.shape != memory.shape or array.dtype != memory.dtype:
                return False
            memory[...] = array
        if self._places is not None:
            self._places[0][...], self._places[1][...] = ctx.epoch, ctx.position
        return self._runnable.run()
