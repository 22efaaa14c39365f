# SPDX-License-Identifier: Apache-2.0
"""Plans a batch by what was recorded of an earlier one: one native call instead of the rules of all operators.

What operators of a chain do in their rules follows from the number of samples, the types and layouts of the inputs, and
what is computed of columns on record, if they say so (`Operator.replays`). While a chain is planned with a `Recorder`,
it keeps the native calls; memory of the plan is kept too, so that the same calls with the same addresses make the plan
of another batch. A call with another result than before, such as a bad sample, means that the rules have to run after
all.
"""

from __future__ import annotations

import ctypes
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Buffer, Spec
from ...core.columns import plain
from ...core.dtypes import from_numpy
from ...core.recording import Recorder
from ...core.rng import Random
from ...core.rows import TENSOR, ArgumentRows, Unread, address, allocate
from ..context import Context
from .launch import Launch, execute
from .record_kinds import Kinds, rules_only
from .wiring import Edge, Wiring, inputs_of

if TYPE_CHECKING:
    from .chain import Chain, Link, _Segment

# Records are kept for kinds of so many rows in total.
_KEPT_ROWS = 4096


class Record(Recorder):
    """What is recorded of one segment."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: list[tuple[Edge, Any]] = []  # and where the address of its rows is put
        self.columns: list[tuple[Link, str, np.ndarray]] = []  # arguments that are data
        self.peeked: list[tuple[Edge, np.ndarray]] = []  # inputs that rules look into
        self.places: tuple[np.ndarray, np.ndarray] | None = None  # epochs and positions of the samples

    def input(self, e: Edge, batch: Batch) -> Batch:
        """The same batch, whose rows lie where they will be for every batch."""
        spec = batch.spec
        rows, at = self.memory(spec.n, TENSOR)
        shape, at_shape = self.allocate((spec.n, spec.ndim), np.dtype("i8"))
        place = ctypes.c_void_p(batch.rows_address)
        self.inputs.append((e, place))
        self.call("take_in", ctypes.addressof(place), spec.n, spec.ndim, at, at_shape)
        return Batch(self.whole(Spec(shape, spec.dtype, spec.layout)), rows, batch.owners, batch.sources)

    def whole(self, spec: Spec) -> Spec:
        """The same; with where its samples begin, which a rule may compute with."""
        spec._origin = self.constant(spec.origin)
        return spec

    def argument(self, link: Link, name: str, column: np.ndarray) -> np.ndarray:
        """A column of data, where it will be for every batch."""
        memory, twin = self.copied(column)
        self.columns.append((link, name, memory))
        return twin

    def contents(self, e: Edge, batch: Batch) -> np.ndarray:
        """All samples of an input that a rule looks into, where they will be for every batch."""
        array = batch.array()
        if not batch.on_host:
            return self.unknown("what an input on the GPU holds", array)
        memory, column = self.copied(array)
        self.peeked.append((e, memory))
        return column

    def random(self, random: Random) -> Random:
        """The same numbers, from epochs and positions that lie where they will be for every batch."""
        if self.places is None:
            columns = random.epoch.astype("u4"), random.position.astype("u8")
            self.places = tuple(self.copied(c)[0] for c in columns)  # type: ignore[assignment]
        return Random(random.key, *map(self.column, self.places))  # type: ignore[arg-type]

    def filled(self, arguments: list[ArgumentRows], params: list[dict[str, Any]]) -> None:
        """Records how the arguments of kernels were filled."""
        for rows, columns in zip(arguments, params):
            for field, column in columns.items():
                if type(column) is Unread:
                    self.unread(rows.views[field], column.name)
                if not isinstance(column, np.ndarray):
                    continue
                self.check(column, f"the column '{field}'")
                if field in rows.pointers:
                    if not column.flags.c_contiguous:
                        self.fault = self.fault or f"the column '{field}' is copied"
                    self._alive.append(plain(column))
                elif not self.is_constant(column):
                    to = rows.views[field]
                    self.assign(to if column.ndim < 2 or to.ndim < 2 else to[:, : column.shape[1]], column)

    def unread(self, to: np.ndarray, name: str) -> None:
        """Records how numbers that are the batch's own get to the rows of arguments."""
        assert self.places is not None
        numbers = self.places[("epoch", "position").index(name)]
        signed = np.dtype(f"i{numbers.itemsize}")
        self.assign(to.view(signed), self.column(numbers.view(signed)))

    def described(self, launch: Launch, specs: dict[Edge, Spec]) -> None:
        """Records how the shapes of tensors were filled in."""
        for e, tensors in launch.tensors.items():
            self.assign(tensors.shape[:, : specs[e].ndim], specs[e].stored)


class Peeked(Batch):
    """An input that a rule may look into while it is on record; `seen` is what `Record.input` gave for the batch."""

    __slots__ = ("_load",)

    def __init__(self, record: Record, e: Edge, batch: Batch, seen: Batch):
        super().__init__(seen.spec, seen.rows, (), batch.sources)
        self.rows_address = seen.rows_address
        self._load = record, e, batch

    def array(self) -> np.ndarray:
        if self._array is None:
            record, e, batch = self._load
            self._array = record.contents(e, batch)
        return self._array


class Replays:
    """The records of one chain that are not in use, by the kind of batch."""

    def __init__(self, chain: Chain):
        self.chain: Chain = weakref.proxy(chain)  # whose these are
        made = {n.number for n in chain.nodes}
        self._reads = list(dict.fromkeys(e for n in chain.nodes for e in inputs_of(n) if e[0] not in made))
        self._drawing = [link.resolver for link in chain.links if link.draws]
        self._kinds = Kinds(_KEPT_ROWS)
        self._idle: dict[tuple, list[Replay]] = {}

    @staticmethod
    def suit(links: list[Link]) -> bool:
        """Whether a chain of these can be recorded at all."""
        return not rules_only() and all(link.op.replays for link in links)

    def run(self, ctx: Context, pool: kernels.Pool) -> bool:
        """Runs the chain by a record, or while it is recorded; False if neither can be."""
        kind = self._kind(ctx)
        if kind is None:
            return False
        replay = self._planned(kind, ctx)
        if replay is None:
            if not self._kinds.pays(kind):
                return False
            with self._kinds.recording(kind):
                return self._record(kind, ctx, pool)
        replay.run(pool)
        self._idle[kind].append(replay)
        return True

    def segment(self, ctx: Context) -> Replay | None:
        """The plan of a batch by a record, if there is one. Whoever has run it gives it back."""
        kind = self._kind(ctx)
        return None if kind is None else self._planned(kind, ctx)

    def take_back(self, segment: Replay | _Segment, ctx: Context) -> None:
        """Takes back what `segment` gave, or what was planned with the record of `for_segment`, after it has run."""
        if isinstance(segment, Replay):
            self._idle[segment.kind].append(segment)
        elif segment.record is not None and (kind := self._kind(ctx)) is not None:
            self._keep(kind, segment, segment.record)

    def for_segment(self, ctx: Context) -> Record | None:
        """To plan a batch with."""
        kind = self._kind(ctx)
        return Record() if kind is not None and self._kinds.pays(kind) else None

    def _planned(self, kind: tuple, ctx: Context) -> Replay | None:
        idle = self._idle.get(kind)
        try:
            replay = idle.pop()  # type: ignore[union-attr]
        except AttributeError:
            return None
        except IndexError:
            replay = self._given_back(kind)
            if replay is None:
                return None
        agrees = replay.plan(ctx)
        goes_on = self._kinds.used(kind, agrees)
        if agrees:
            return replay
        if goes_on:
            self._idle[kind].append(replay)
        return None

    def _given_back(self, kind: tuple) -> Replay | None:
        """A record of a kind all of whose records are in use, if it pays to wait for one."""
        return None

    def _kind(self, ctx: Context) -> tuple | None:
        """All that the rules may decide by, other than columns; None for what is not recorded."""
        if not ctx.n:
            return None
        kind: list[Any] = [ctx.n, *(resolver.key for resolver in self._drawing)]
        for e in self._reads:
            batch = ctx.values[e]
            spec = batch.spec
            if spec.stored is not spec.shape:
                return None
            kind += spec.shape.shape[1], spec.dtype, spec.layout, batch.sources is None
        return tuple(kind)

    def _record(self, kind: tuple, ctx: Context, pool: kernels.Pool) -> bool:
        record = Record()
        try:
            segment = self.chain.run_by_rules(ctx, pool, record)
        except Exception:  # which comes again if it is not about the record
            return False
        self._keep(kind, segment, record)
        return True

    def _keep(self, kind: tuple, segment: _Segment, record: Record) -> None:
        if record.fault or segment.launch is None or len(segment.calls) < len(self.chain.links):
            self._kinds.give_up(kind)
            return
        replay = Replay(self.chain, segment, record, kind)
        self._idle.setdefault(kind, []).append(replay)


class Recorded:
    """The calls of a record, and the memory that they work on. Used by one batch at a time."""

    def __init__(self, record: Record):
        self._inputs, self._columns, self._peeked = record.inputs, record.columns, record.peeked
        self._places = record.places
        self._calls, self._n_calls, self._alive = record.end()
        self._usable = not record.fault

    def replayed(self, ctx: Context) -> bool:
        """Makes the calls for a batch; says whether the record is of use for it."""
        values = ctx.values
        for e, place in self._inputs:
            place.value = values[e].rows_address
        for link, name, twin in self._columns:
            try:
                column = link.resolver.column(name, ctx.n, values)
            except ValueError:  # which the rules raise with an explanation
                return False
            if column.shape != twin.shape or column.dtype != twin.dtype:
                return False
            twin[...] = column
        for e, twin in self._peeked:
            if not values[e].on_host or not values[e].spec.is_dense:
                return False
            array = values[e].array()
            if array.shape != twin.shape or array.dtype != twin.dtype:
                return False
            twin[...] = array
        if self._places is not None:
            self._places[0][...], self._places[1][...] = ctx.epoch, ctx.position
        return self._usable and kernels.library().replay(self._calls, self._n_calls) == self._n_calls


class Replay:
    """A segment of a chain that is planned by a record. Used by one batch at a time."""

    begin: int

    def __init__(self, chain: Chain, segment: _Segment, record: Record, kind: tuple):
        self.kind = kind
        wiring: Wiring = chain.wiring(chain.nodes)
        assert segment.launch is not None
        self._launch, self._wiring = segment.launch, wiring
        self._outputs: list[_Output] = []
        self._placed = (_Placed * len(wiring.allocated))()
        named = {e: e for e, _ in record.inputs if segment.ctx.values[e].sources is not None}
        for link in chain.links:
            name = next((named[e] for e in link.ins if e in named), None)
            if name is not None:
                named.update(dict.fromkeys(link.outs, name))
        for e in wiring.allocated:
            slots = [slot for slot, edge in self._launch.of_batches if edge == e]
            placed = self._placed[len(self._outputs)]
            output = _Output(e, segment.specs[e], slots, named.get(e), e in wiring.wanted, placed)
            output.shortened = e in wiring.shortened
            record.check(output.stored, "the shape of an output")
            if not output.stored.flags.c_contiguous:
                record.fault = record.fault or "the shape of an output is a view"
            self._outputs.append(output)
        # What is seen in the memory of others: by kernels, and by whoever gets it.
        self._seen = [(self._launch.tensors[e], root) for e, root in wiring.views]
        self._renamed = []
        for e in wiring.wanted - set(wiring.allocated):
            record.check(segment.specs[e].shape, "the shape of an output")
            self._renamed.append((e, wiring.root[e], segment.specs[e], named.get(e)))
        self._recorded = Recorded(record)
        # As of a segment: the types and layouts of all edges, and memory for outputs, where it is there already.
        self.specs, self.counts = dict(segment.specs), None
        self.given: dict[Edge, Batch] = {}
        self._ctx: Context | None = None

    def plan(self, ctx: Context) -> bool:
        """Says whether the record is of use for a batch, whose plan is then in place."""
        self.begin, self._ctx, self.given = time.monotonic_ns(), ctx, {}
        return self._recorded.replayed(ctx)

    def run(self, pool: kernels.Pool) -> None:
        """Runs what is planned."""
        ctx, self._ctx = self._ctx, None  # which an idle record doesn't keep alive
        assert ctx is not None
        values = ctx.values
        made = self._make()
        for output, batch in zip(self._outputs, made):
            if output.named is not None:
                batch.sources = values[output.named].sources
            output.put(batch)
        self.given = {}
        whole = (
            {output.edge: batch for output, batch in zip(self._outputs, made)} if self._seen or self._renamed else {}
        )
        for tensors, root in self._seen:
            tensors.data[...] = (whole[root] if root in whole else values[root]).rows["data"]
        execute(ctx, self._wiring.native, self._launch.program, pool, self.begin)
        for output, batch in zip(self._outputs, made):
            if output.shortened:
                batch.shorten()
            if output.wanted:
                values[output.edge] = batch
        for e, root, spec, name in self._renamed:
            batch = (whole[root] if root in whole else values[root]).relabel(spec.copy())
            batch.sources = None if name is None else values[name].sources
            values[e] = batch

    def _make(self) -> list[Batch]:
        """The outputs: those that are given, and memory for others."""
        outputs, n, given = self._outputs, self._launch.program.n_rows, self.given
        if outputs and not given and not Batch.guard_bytes:
            rows, at = allocate(len(outputs) * n, TENSOR)
            if kernels.library().place_batches(self._placed, len(outputs), n, at):
                step = n * TENSOR.itemsize
                return [o.made(rows[i * n : (i + 1) * n], at + i * step) for i, o in enumerate(outputs)]
        return [given[o.edge] if o.edge in given else Batch.allocate(o.spec()) for o in outputs]


class _Placed(ctypes.Structure):
    _fields_ = [
        ("stored", ctypes.c_void_p),
        ("before", ctypes.c_void_p),
        ("about", ctypes.c_int64 * 4),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class _Output:
    """An output that becomes a batch."""

    def __init__(self, edge: Edge, spec: Spec, slots: list[Any], named: Edge | None, wanted: bool, placed: _Placed):
        self.edge, self.stored, self.wanted = edge, plain(spec.stored), wanted
        self.shortened = False  # a kernel says how much of it there is
        self._slots, self.named = slots, named
        self._spec = Spec(self.stored.copy(), spec.dtype, spec.layout)
        self._before, at_before = allocate(self.stored.shape, np.dtype("i8"))
        self._before[...] = -1
        self._placed = placed
        placed.stored, placed.before, placed.ndim = address(self.stored), at_before, self.stored.shape[1]
        placed.dtype = int(from_numpy(spec.dtype))

    def put(self, batch: Batch) -> None:
        """Has kernels write to a batch."""
        at = batch.rows_address
        for slot in self._slots:
            slot.rows = at

    def spec(self) -> Spec:
        """That of the batch at hand."""
        return Spec(self.stored.copy(), self._spec.dtype, self._spec.layout)

    def made(self, rows: np.ndarray, at: int) -> Batch:
        """The batch that was placed, of which the rows are there."""
        spec, (nbytes, dense, place, same) = self._spec, self._placed.about
        buffer = Buffer.at(place, nbytes)
        if not same:
            spec = self._spec = self.spec()
            spec._dense = bool(dense)
        batch = Batch(spec, rows, (buffer,))
        batch.rows_address, batch._packed = at, bool(dense)
        return batch
