# SPDX-License-Identifier: Apache-2.0
"""Groups the calls of a segment into launches, generates their source and chooses their grids.

A group is one gather, block or own kernel, or a plain load, followed by LOCAL kernels whose inputs nothing else
reads: one launch for all of them over the whole ragged batch (an own kernel may need several). See kernels/core/gpu.h.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.batch import Spec
from ..core.traced import Traced, plain
from . import forms
from .access import (
    alignment_of_planes,
    extents_of,
    gathers_along_rows,
    goes_in_runs,
    threads_of_row,
    turned_coordinate,
)
from .calls import Call, Specs, Tensor, constants, named, reflects, resamples_channels, shifts_channels, turns
from .source import Kind, OddBatch, Step, places, run_length, runs, write

MAX_TENSORS, MAX_ARGS = 16, 12  # of `struct Launch` in kernels/core/gpu.h
_MOST_LOCALS = 6
_THREADS, _UNROLL = 256, 4
_MOST_ROWS_OF_BLOCKS = 65535  # gridDim.y
_WAVE = 132 * 8  # blocks that fill a large GPU
_ALWAYS_FIT = 256  # block size that fits on a multiprocessor with any register count (at most 255)


@dataclass(slots=True)
class Launch:
    """One launch of a function compiled from `source`, whose only argument is struct Launch of kernels/core/gpu.h.

    Its tensors[i] are rows of `tensors`, then of `shapes` (tensors that are never in memory); its
    args[i] are argument rows of `calls`. Launches must be made in order, on one stream.
    """

    source: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    tensors: list[Tensor]
    shapes: list[Tensor]
    calls: list[int]
    scratch: Any = 0  # bytes of device memory in Launch::scratch, which launches share; may be traced
    zero: bool = False  # whether the scratch is zeroed before


class Phase(NamedTuple):
    """One launch returned by a kernel's `plan`: `body` is the body of the launched function."""

    body: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (_THREADS, 1, 1)
    shared: int = 0
    scratch: int = 0  # shared by all launches
    zero: bool = False
    definitions: tuple[str, ...] = ()  # lines before the function, such as "#define TAPS 4"
    resident: int = 0  # minimum resident blocks per multiprocessor, which limits registers; 0: no limit


class Task(NamedTuple):
    """The input of a kernel's `plan`: the call, the specs of its outputs and inputs, the spec of the last output of the
    chain after it (the head's own if there is none), and the Kinds of the head's first output and of the last output.
    For a fused kernel, `call` is the second call and `before` the first, whose inputs it has."""

    call: Call
    outs: list[Spec]
    ins: list[Spec]
    last: Spec
    kind: Kind
    last_kind: Kind
    n: int
    before: Call | None = None


class _Group:
    """The calls of one launch, by number: a head, or none, and LOCALs in order. `before` is a call fused into the head,
    whose output is not in memory."""

    def __init__(self, head: int | None, locals_: Sequence[int] = (), before: int | None = None):
        self.head, self.locals, self.before = head, list(locals_), before

    def split(self, at: int) -> list[_Group]:
        """Two groups: `at` of the LOCALs stay with the head."""
        return [_Group(self.head, self.locals[:at], self.before), _Group(None, self.locals[at:])]


class Fusion:
    """The groups of a segment with given kernels and edges; created once, used to plan every batch."""

    def __init__(self, calls: list[Call], kept: Collection[Tensor]):
        """`kept` are the tensors that must be in memory: those read elsewhere, and roots of aliases."""
        uses = Counter(t for c in calls for t in c.ins)
        private = {t for t, n in uses.items() if n == 1 and t not in kept}  # one call reads them, and nothing else
        self._groups: list[_Group] = []
        open_: dict[Tensor, _Group] = {}  # groups that can be extended, by last output
        made_by = {t: i for i, c in enumerate(calls) for t in c.outs}
        for i, c in enumerate(calls):
            if c.form in forms.LOCAL:
                group = open_.pop(c.ins[0], None) if c.ins[0] in private else None
                if group is not None and group.before is not None and c.form != "values":
                    group = None
                if group is None or len(group.locals) == _MOST_LOCALS:
                    group = _Group(None)
                    self._groups.append(group)
                group.locals.append(i)
            else:
                group = _Group(i)
                joined, first = forms.described(c.kernel).joined, c.ins[0] if c.ins else None
                if joined and first in private and first in made_by and calls[made_by[first]].kernel == joined[0]:
                    group.before = made_by[first]
                    self._groups = [g for g in self._groups if g.head != group.before]
                self._groups.append(group)
            if c.form != "own":
                open_[c.outs[0]] = group
        self._texts: dict[tuple, tuple[str, str]] = {}

    def plan(self, calls: list[Call], specs: Specs, n: int) -> list[Launch]:
        """Plans the launches of a batch of n rows; `specs` are by tensor. If arguments and extents are traced, all that
        is decided by them or compiled in is checked for later batches; what affects only speed, such as grids, uses
        `plain` numbers. Raises OddBatch if the launches depend on unusual properties of the batch."""
        return self._apart(self._groups, calls, specs, n) if n else []

    def _plan(self, g: _Group, calls: list[Call], specs: Specs, n: int) -> list[Launch]:
        locals_ = [calls[i] for i in g.locals]
        head = None if g.head is None else calls[g.head]
        before = None if g.before is None else calls[g.before]
        between = []
        if head and before:
            between = [head.ins[0]]
            head = Call(forms.described(head.kernel).joined[1], head.outs, before.ins, head.args)
        chain = [head.outs[0] if head else locals_[0].ins[0], *(c.outs[0] for c in locals_)]
        tensors = [chain[-1], *head.outs[1:], *head.ins] if head else [chain[-1], chain[0]]
        shapes = [t for t in [*chain[0 if head else 1 : -1], *between] if t not in tensors]
        where = {t: i for i, t in reversed(list(enumerate([*tensors, *shapes])))}
        order = [i for i in (g.head, g.before, *g.locals) if i is not None]
        seen = [specs[t] for t in chain]
        of_locals = [c.form for c in locals_]
        form = head.form if head else "values" if set(of_locals) == {"values"} else "local"
        if form == "values":
            kinds = runs([s.dtype for s in seen])
        else:
            if form == "block" and any(reflects(c) or turns(c, specs) for c in locals_):
                return self._apart(g.split(0), calls, specs, n)
            for t in dict.fromkeys((*chain, *tensors)):
                _check_volumes(specs[t])
            flat = not head and "places" not in of_locals
            shifts = any(shifts_channels(c, specs) for c in locals_)
            kinds = places(seen, flat, shifts or (head is not None and resamples_channels(head, specs)))
            if "pixels" in of_locals and not kinds[0].unit:  # calls that need whole pixels get their own launch
                at = of_locals.index("pixels")
                if head or len(locals_) > 1:
                    return self._apart(g.split(at or (0 if head else 1)), calls, specs, n)
        steps = [
            Step(c.kernel, k, order.index(i), where[c.outs[0]], where[c.ins[0]], constants(c))
            for i, c, k in zip(g.locals, locals_, kinds[1:])
        ]
        first, is_own = head or locals_[0], form in ("block", "own")
        outs, ins = [specs[t] for t in first.outs], [specs[t] for t in first.ins]
        task = Task(first, outs, ins, seen[-1], kinds[0 if head else -1], kinds[-1], n, before)
        phases: list[Phase] = []
        if is_own:
            phases = forms.companion(first.kernel)(task)
            if not phases:  # better done as two launches
                return self._apart([_Group(g.before), _Group(g.head, g.locals)], calls, specs, n)
        elif len(order) == 1 and not head and (alone := forms.alone(first.kernel)):
            phases = alone(task)
        if not phases:
            in_runs = not head and form != "values" and goes_in_runs(kinds, seen, locals_)
            along = ("rows" if "places" in of_locals else "runs") if in_runs else form
            turned = turned_coordinate(kinds, seen, locals_) if along == "local" else -1
            tiles = turned >= 0
            phases = [_tiles(kinds, seen[-1], turned, n) if tiles else _phase(along, kinds, seen, head, where, n)]
        launches = []
        for p in phases:
            block, shared = (int(p.block[0]), int(p.block[1]), int(p.block[2])), int(p.shared)
            more = [*p.definitions]
            if head:
                more += [f"typedef {k} {name};" for name, k in named(head, specs, kinds[0])]
                if form == "gather":
                    name, values = forms.struct_of(head.kernel), "".join(f", {c}" for c in constants(head))
                    more.append(f"template <class To, class From> using Head = {name}<To, From{values}>;")
            source, entry = self._text(calls, order, kinds[0], steps, head, p, tuple(more))
            grid = (max(p.grid[0], 1), p.grid[1], p.grid[2])  # later batches with the same launch may have more work
            scratch = int(p.scratch) if p.zero else p.scratch
            launches.append(Launch(source, entry, grid, block, shared, tensors, shapes, order, scratch, p.zero))
        return launches

    def _apart(self, groups: list[_Group], calls: list[Call], specs: Specs, n: int) -> list[Launch]:
        return [x for g in groups for x in self._plan(g, calls, specs, n)]

    def _text(self, calls, order, source: Kind, steps, head, p: Phase, more: tuple[str, ...]) -> tuple[str, str]:
        threads = p.block[0] * p.block[1] * p.block[2]
        resident = p.resident or int(threads > _ALWAYS_FIT)
        bounds = f"__launch_bounds__({threads}, {resident}) " if resident else ""
        # Kernels that share a scheme have the same body text, but it refers to their own definitions.
        key = (head.kernel if head else "", source, tuple(steps), p.body, bounds, more)
        if key not in self._texts:
            entry = "__".join(calls[i].kernel.rsplit("/", 1)[-1] for i in order)[:100] + "_gpu"
            includes = [head.kernel] if head else []
            self._texts[key] = write(entry, source, steps, includes, p.body, list(more), bounds), entry
        return self._texts[key]


def _check_volumes(s: Spec) -> None:
    """Adds a check for later batches that offsets in samples fit 32 bits, with room for padding."""
    if isinstance(s.stored, Traced) and not s.stored.tracer.call("volumes_below", s.stored, s.n, s.ndim, 1 << 30):
        raise OddBatch("a sample is very large")


def plain_spec(s: Spec) -> Spec:
    """The spec with its current extents, for decisions that affect only speed."""
    return Spec(plain(s.stored), s.dtype, s.layout) if isinstance(s.stored, Traced) else s


def grid_of(blocks: np.ndarray, n: int) -> tuple[int, int, int]:
    """The grid for samples that can use `blocks` (n,) blocks each, for kernels that loop over both: at most a few times
    what the average sample needs, so that one huge sample does not launch idle blocks for all."""
    blocks = plain(blocks)
    most = int(blocks.max(initial=0))
    few = max(-(-4 * int(blocks.sum()) // n), -(-_WAVE // n))
    return min(most, few), min(n, _MOST_ROWS_OF_BLOCKS), 1


def simple_launch(said: forms.SimpleLaunch, task: Task) -> list[Phase]:
    """The launch described by a `// launch: ...` line."""
    s = (task.outs if said.of_output else task.ins)[said.tensor]
    amount = s.volumes() * (s.dtype.itemsize if said.in_bytes else 1)
    if (s.volumes() >= 1 << 32).any():
        raise ValueError(f"a sample of shape {s.shape.max(axis=0).tolist()} is too large for the GPU")
    return [Phase(said.body, grid_of(-(-amount // said.portion), task.n), (said.threads, 1, 1))]


def _tiles(kinds: list[Kind], out: Spec, at: int, n: int) -> Phase:
    extents = extents_of(kinds[-1], out).copy()
    is_large = extents[:, [at, -1]].mean() > 48 and kinds[-1].c * out.dtype.itemsize <= 8
    side = 64 if is_large else 32
    extents[:, [at, -1]] = -(-extents[:, [at, -1]] // side)
    body = f"run_tiles<{kinds[0]}, 1, Chain, {at}, {side}>(l);"
    return Phase(body, grid_of(several_each(extents.prod(axis=1)), n), resident=4)


def several_each(blocks: np.ndarray) -> np.ndarray:
    """Reduces the number of blocks, each doing several rounds, if there are many: starting a block costs as much as a
    round."""
    blocks = plain(blocks)
    rounds = min(max(int(blocks.sum()) // (2 * _WAVE), 1), 4)
    return -(-blocks // rounds)


def _phase(form: str, kinds: list[Kind], specs: list[Spec], head: Call | None, at: dict[Tensor, int], n: int) -> Phase:
    """A launch without a kernel's own `plan`; what is derived from extents affects only speed."""
    last, out = kinds[-1], plain_spec(specs[-1])
    if form == "values":
        most_runs = -(-out.volumes() // last.c) + 1
        u = _UNROLL // 2 if out.dtype.itemsize > specs[0].dtype.itemsize else _UNROLL
        blocks = -(-most_runs // (_THREADS * u))
        body = f"run_values<Chain, 1, {_THREADS}, {u}>(l);"
        return Phase(body, grid_of(several_each(blocks), n), resident=4)
    if last.n == 1 or not out.ndim:
        columns, rows = out.volumes() // last.c, np.ones(out.n, "i8")
    else:
        extents = extents_of(last, out)
        columns, rows = extents[:, -1], extents[:, :-1].prod(axis=1)
    if int((columns * rows).max(initial=0)) >= 1 << 31:
        raise ValueError(f"a sample of shape {out.shape.max(axis=0).tolist()} is too large for the GPU")
    if form == "rows":
        p = run_length(kinds[0], last, [specs[0].dtype, out.dtype], alignment_of_planes(last, out))
        runs_each = int(columns.mean()) // p + 1
        g = threads_of_row(runs_each)
        # Bytes that a thread keeps in registers at once.
        most = p * (kinds[0].c * specs[0].dtype.itemsize + last.c * out.dtype.itemsize)
        u = max(1, min(_UNROLL, 128 // most, -(-runs_each // g)))
        u = 1 << (u.bit_length() - 1)
        blocks = np.where(columns > 0, -(-rows // (_THREADS // g)), 0)
        body = f"run_rows<{kinds[0]}, 1, Chain, {p}, {g}, {_THREADS}, {u}>(l);"
        resident = 2 if out.dtype.itemsize >= 4 * specs[0].dtype.itemsize else 3
        return Phase(body, grid_of(several_each(blocks), n), resident=resident)
    if form == "runs":
        p = run_length(kinds[0], last, [specs[0].dtype, out.dtype])
        most = p * max(kinds[0].c * specs[0].dtype.itemsize, last.c * out.dtype.itemsize)
        at_once = max(1, min(_UNROLL, 64 // most))
        blocks = np.where(columns > 0, -(-(-(-columns // p) + 1) // (_THREADS * at_once)), 0)
        body = f"run_pixels<{kinds[0]}, 1, Chain, {p}, {_THREADS}, {at_once}>(l);"
        resident = 0 if out.dtype.itemsize == 1 else 3
        return Phase(body, grid_of(several_each(blocks), n), resident=resident)
    bx = min(32, max(4, 1 << (int(columns.max(initial=1)) - 1).bit_length()))
    by = _THREADS // bx
    along, down = (_THREADS * _UNROLL, 1) if last.n == 1 else (bx, by * _UNROLL)
    if last.n == 1:
        bx, by = _THREADS, 1
    blocks = -(-columns // along) * -(-rows // down)
    load = f"Load<{kinds[0]}, 1>"
    if head:
        load = f"Gather<Head, To0, From0, {at[head.outs[0]]}, {at[head.ins[0]]}>"
        if gathers_along_rows(kinds, out):
            blocks = np.where(columns > 0, -(-rows // (_THREADS // 32)), 0)
            body = f"run_gather<{load}, Chain>(l);"
            return Phase(body, grid_of(several_each(blocks), n), resident=4)
    body = f"run_local<{load}, Chain, {bx}, {by}, {_UNROLL}>(l);"
    return Phase(body, grid_of(several_each(blocks), n), (bx, by, 1))
