# SPDX-License-Identifier: Apache-2.0
"""The plan of a segment on the GPU: all rows and arrays that its launches read as one image, how the image follows from
where the data of a batch lies, and the launches. Starting it is one native call (kernels/core/gpu_plan.cpp); it can't
be changed, so any number of batches may be started at once."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Spec
from ...core.errors import InternalError
from ...core.rows import TENSOR, address, allocate
from ...gpu.batch import DeviceBatch
from ...gpu.driver import OutOfDeviceMemory, check
from ...gpu.memory import Block
from ...gpu.session import GpuPass, Session
from ..context import Context, Timing
from ..cpu.wiring import Edge
from ..origins import Origin, names_of

INPUT, MEMORY, COLUMN = range(3)
IMAGE, WORKSPACE, OUTPUTS = range(3)  # memory: the image's, the workspace's, the first output's
_COLUMNS = {"position": (0, np.dtype("i8")), "epoch": (1, np.dtype("u4"))}
_ALIGNED = 256
_TOGETHER = 128 << 10  # bytes of all batches given out that share a block


class _Patch(ctypes.Structure):
    _fields_ = [
        ("at", ctypes.c_int64),
        ("step", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("index", ctypes.c_void_p),
        ("source", ctypes.c_int32),
        ("which", ctypes.c_int32),
        ("bytes", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    ]


class _Start(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("n_tensors", ctypes.c_int32),
        ("n_args", ctypes.c_int32),
        ("has_scratch", ctypes.c_int32),
        ("zeroed", ctypes.c_int64),
        ("tensors", ctypes.c_uint64 * 16),
        ("args", ctypes.c_uint64 * 12),
        ("scratch", ctypes.c_uint64),
        ("n", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    ]


class _Rows(ctypes.Structure):
    _fields_ = [
        ("rows", ctypes.c_void_p),
        ("n", ctypes.c_int64),
        ("source", ctypes.c_int32),
        ("which", ctypes.c_int32),
    ]


class _Part(ctypes.Structure):
    _fields_ = [("where", ctypes.c_void_p), ("at", ctypes.c_int64), ("bytes", ctypes.c_int64)]


class _Plan(ctypes.Structure):
    _fields_ = [
        ("parts", ctypes.c_void_p),
        ("image_bytes", ctypes.c_int64),
        ("patches", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("n_parts", ctypes.c_int32),
        ("n_patches", ctypes.c_int32),
        ("n_starts", ctypes.c_int32),
        ("n_outputs", ctypes.c_int32),
    ]


class _Place(ctypes.Structure):
    _fields_ = [
        ("inputs", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("staging", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("begin", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("done", ctypes.c_int32),
    ]


class Where(NamedTuple):
    """What the data addresses in rows of tensors are distances from."""

    source: int  # INPUT or MEMORY
    which: int
    chosen: np.ndarray | None = None  # (n,) int32: the row of the input for each; None: the same


HERE = Where(MEMORY, -1)  # they are addresses already


class Image:
    """What travels to the GPU in one copy, with the places in it that follow from the batch."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray]] = []
        self._patches: list[tuple[int, int, int, np.ndarray | None, int, int, int]] = []
        self.size = 0

    def add(self, array: np.ndarray) -> int:
        """Where the array will lie, relative to the beginning. It is copied by `packed`."""
        at = self.size
        self._parts.append((at, array))
        self.size = at + (array.nbytes + 15 & ~15)
        return at

    def add_rows(self, rows: np.ndarray, where: Where) -> int:
        """As `add`, for rows of a tensor."""
        at = self.add(rows)
        if where is not HERE:
            self._patches.append((at, rows.itemsize, len(rows), where.chosen, where.source, where.which, 8))
        return at

    def points(self, at: int, step: int, n: int) -> None:
        """The n numbers from `at` on are places in the image, to be made addresses."""
        self._patches.append((at, step, n, None, MEMORY, IMAGE, 8))

    def column(self, name: str, at: int, step: int, n: int, nbytes: int, index: np.ndarray | None) -> None:
        """The n numbers of so many bytes from `at` on are positions or epochs of samples."""
        self._patches.append((at, step, n, index, COLUMN, _COLUMNS[name][0], nbytes))

    @property
    def has_columns(self) -> bool:
        return any(p[4] == COLUMN for p in self._patches)

    def packed(self) -> tuple[Any, Any, list[Any]]:
        """The parts, the patches, and what these need. The parts are copied to one."""
        memory, at = allocate(max(self.size, 1), np.dtype("u1"))
        for begin, array in self._parts:
            if array.nbytes:
                array = np.ascontiguousarray(array)
                ctypes.memmove(at + begin, address(array), array.nbytes)
        return (_Part * 1)(_Part(at, 0, self.size)), *self._packed_patches([memory])

    def shared(self) -> tuple[Any, Any, list[Any]]:
        """As `packed`; the parts stay where they are, to be read whenever the plan is started."""
        parts = (_Part * len(self._parts))()
        for p, (begin, array) in zip(parts, self._parts):
            if not array.flags.c_contiguous:
                raise InternalError("a part of a recorded plan is not contiguous")
            p.where, p.at, p.bytes = address(array), begin, array.nbytes
        return parts, *self._packed_patches([array for _, array in self._parts])

    def _packed_patches(self, alive: list[Any]) -> tuple[Any, list[Any]]:
        patches = (_Patch * len(self._patches))()
        for p, (begin, step, n, index, source, which, nbytes) in zip(patches, self._patches):
            p.at, p.step, p.n, p.source, p.which, p.bytes = begin, step, n, source, which, nbytes
            if index is not None:
                alive.append(index)
                p.index = address(index)
        return patches, alive


class Output(NamedTuple):
    """A batch that a segment gives out. Of a new one `rows` are those of a batch in memory that begins at 0; of one
    that is seen in the memory of another they are distances from that of `where`, which `root` (an edge) names."""

    edge: Edge
    spec: Spec
    rows: np.ndarray
    nbytes: int
    where: Where
    root: Edge | None
    named: Origin  # where its samples' names come from
    wanted: bool


class Started(NamedTuple):
    """A launch; `tensors` and `args` are places in the image, `scratch` one in the workspace."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    tensors: list[int]
    args: list[int]
    scratch: int | None
    zeroed: int


class GpuPlan:
    """Made by exec/gpu/chain.py. `inputs` are the edges from outside, `links` how many operators it is for."""

    def __init__(
        self,
        session: Session,
        numbers: list[int],
        inputs: Sequence[Edge],
        n: int,
        image: Image,
        starts: Sequence[Started],
        workspace: int,
        outputs: Sequence[Output],
    ):
        self.session, self.numbers, self.links = session, numbers, len(numbers)
        self._inputs = list(inputs)
        self._makes = [o for o in outputs if o.root is None]
        self._views = [o for o in outputs if o.root is not None]
        self._columns = image.has_columns
        parts, patches, alive = self._image(image)
        self._at_workspace = -(-image.size // _ALIGNED) * _ALIGNED
        self._block = self._at_workspace + workspace
        self._sizes, self._specs = [o.nbytes for o in self._makes], [o.spec for o in self._makes]
        self.nbytes = image.size
        packed = (_Start * len(starts))()
        for s, x in zip(packed, starts):
            s.function, s.shared, s.zeroed, s.n = x.function, x.shared, x.zeroed, n
            s.grid[:], s.block[:] = x.grid, x.block
            s.n_tensors, s.n_args = len(x.tensors), len(x.args)
            s.tensors[: len(x.tensors)], s.args[: len(x.args)] = x.tensors, x.args
            s.has_scratch, s.scratch = x.scratch is not None, x.scratch or 0
        rows = (_Rows * len(outputs))()
        for r, o in zip(rows, (*self._makes, *self._views)):
            r.rows, r.n, r.source, r.which = address(o.rows), len(o.rows), o.where.source, o.where.which
        self._plan = _Plan(
            *(ctypes.addressof(parts), image.size, ctypes.addressof(patches), ctypes.addressof(packed)),
            *(ctypes.addressof(rows), len(parts), len(patches), len(packed), len(rows)),
        )
        self._at = ctypes.addressof(self._plan)
        self._started = len(packed)
        self._n_rows = sum(len(o.rows) for o in outputs)
        self._alive = parts, patches, alive, packed, rows
        self._of_inputs, self._of_outputs = ctypes.c_uint64 * len(self._inputs), ctypes.c_uint64 * len(rows)
        self._of_memory = ctypes.c_uint64 * (OUTPUTS + len(self._makes) + self.n_inner)

    n_inner = 0  # tensors of the workspace that have places of their own

    def _image(self, image: Image) -> tuple[Any, Any, list[Any]]:
        return image.packed()

    def _placed(self) -> tuple[int, list[int], list[Spec], list[int]]:
        """For a batch: bytes of the image with the workspace, bytes and specs of the batches given out, and where in
        the former each inner tensor is."""
        return self._block, self._sizes, self._specs, []

    def _seen(self, output: Output) -> Spec:
        """For a batch: that of one which is seen in the memory of another."""
        return output.spec

    def _rows_of_outputs(self, addresses: Any) -> list[np.ndarray]:
        """Memory for them, in one piece."""
        memory, at = allocate(self._n_rows, TENSOR)
        rows, first = [], 0
        for k, o in enumerate((*self._makes, *self._views)):
            addresses[k] = at + first * TENSOR.itemsize
            rows.append(memory[first : first + len(o.rows)])
            first += len(o.rows)
        return rows

    def _blocks(self, gpu: GpuPass, size: int, sizes: list[int]) -> tuple[list[Block], list[int]]:
        """Memory for the batches given out, where each of them is, and behind it that for the image, if there is one.
        Small batches share a block."""
        ends = list(accumulate(-(-nbytes // _ALIGNED) * _ALIGNED for nbytes in sizes)) if len(sizes) > 1 else ()
        if not ends or ends[-1] > _TOGETHER:
            blocks = gpu.take_all([*sizes, size] if self._started else sizes)
            return blocks, [block.address for block in blocks]
        blocks = gpu.take_all((ends[-1], size) if self._started else (ends[-1],))
        first = blocks[0].address
        return [*blocks[:1] * len(sizes), *blocks[1:]], [first, *(first + end for end in ends)]

    def run(self, ctx: Context, begin: int) -> None:
        """Makes the batches given out, and has the GPU fill them. The plan of the segment began at `begin`."""
        gpu: GpuPass = ctx.gpu
        values, stream = ctx.values, gpu.stream
        inputs = self._of_inputs()
        for k, e in enumerate(self._inputs):
            batch = values[e]
            if isinstance(batch, DeviceBatch):
                batch.used_on(stream)
            inputs[k] = batch.rows_address
        size, sizes, specs, inner = self._placed()
        try:
            blocks, places = self._blocks(gpu, size, sizes)
        except OutOfDeviceMemory as e:
            e.asked, e.shared = [(o.edge[0], nbytes) for o, nbytes in zip(self._makes, sizes)], size
            raise
        base = blocks.pop() if self._started else None
        outputs, memory = self._of_outputs(), self._of_memory()
        rows = self._rows_of_outputs(outputs)
        made: list[Batch] = []
        for k, block in enumerate(blocks):
            memory[OUTPUTS + k] = places[k]
            made.append(new := DeviceBatch.at(stream, specs[k], rows[k], block))
            new.rows_address, new._packed = outputs[k], specs[k]._dense
        place = _Place(ctypes.addressof(inputs), ctypes.addressof(memory), None, ctypes.addressof(outputs))
        place.stream = stream.handle
        native = time.monotonic_ns()
        if base is not None:
            staging = gpu.pinned(self.nbytes)
            memory[IMAGE], memory[WORKSPACE] = base.address, base.address + self._at_workspace
            for k, at in enumerate(inner, OUTPUTS + len(made)):
                memory[k] = base.address + at
            place.staging = staging.address
        if self._columns:
            position, epoch = np.ascontiguousarray(ctx.position, "i8"), np.ascontiguousarray(ctx.epoch, "u4")
            columns = (ctypes.c_uint64 * 2)(address(position), address(epoch))
            place.columns = ctypes.addressof(columns)
        times = gpu.times() if self._started else None
        if times is not None:
            place.begin, place.end = times[0].handle, times[1].handle
        if self._started or self._n_rows:
            code = kernels.library().start_plan(self._at, ctypes.addressof(place))
            stream.asked()
            if code:
                check(code, f"starting launch {place.done} of the operators {self.numbers}")
        if times is not None:
            gpu.session.timed(self.numbers[0], *times)
        for o, batch in zip(self._makes, made):
            if o.wanted:
                batch.sources = names_of(o.named, values)
                values[o.edge] = batch
        of_roots = {o.edge: batch for o, batch in zip(self._makes, made)}
        for k, o in enumerate(self._views, len(made)):
            whole = of_roots.get(o.root) or values[o.root]  # type: ignore[index, arg-type]
            names = names_of(o.named, values)
            seen = whole.with_rows(self._seen(o), rows[k], whole.owners, names)
            seen.rows_address = outputs[k]
            values[o.edge] = seen
        ctx.timings.append(Timing("gpu", self.numbers, begin, time.monotonic_ns(), native))
