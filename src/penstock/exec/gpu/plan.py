# SPDX-License-Identifier: Apache-2.0
"""The plan of a segment on the GPU: all rows and arrays that its launches read as one image, which of it are addresses,
and the launches. Starting it for a batch is one native call (kernels/core/gpu_plan.cpp). Rules make the arrays for one
batch, a program writes to them for each; either way they are read when the plan is started."""

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

INPUT, MEMORY = range(2)
IMAGE, WORKSPACE, OUTPUTS = range(3)  # memory: the image's, the workspace's, the first output's
_ALIGNED = 256
_TOGETHER = 128 << 10  # bytes of all batches given out that share a block


class _Patch(ctypes.Structure):
    _fields_ = [
        ("at", ctypes.c_int64),
        ("step", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("which", ctypes.c_int64),
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
        ("outputs", ctypes.c_void_p),
        ("staging", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("begin", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("done", ctypes.c_int32),
    ]


class Image:
    """What travels to the GPU in one copy. Numbers in it that are distances become addresses when a plan is started."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray]] = []
        self._patches: list[tuple[int, int, int, int]] = []
        self.size = 0

    def add(self, array: np.ndarray) -> int:
        """Where the array will lie, relative to the beginning. It is read whenever a plan is started."""
        if not array.flags.c_contiguous:
            raise InternalError("a part of a plan is not contiguous")
        at = self.size
        self._parts.append((at, array))
        self.size = at + (array.nbytes + 15 & ~15)
        return at

    def add_rows(self, rows: np.ndarray, which: int | None) -> int:
        """As `add`, for rows of a tensor whose data are distances from this memory; None: they are addresses."""
        at = self.add(rows)
        if which is not None:
            self.points(at, rows.itemsize, len(rows), which)
        return at

    def points(self, at: int, step: int, n: int, which: int = IMAGE) -> None:
        """The n numbers from `at` on are distances from this memory."""
        self._patches.append((at, step, n, which))

    def packed(self) -> tuple[Any, Any, list[np.ndarray]]:
        """The parts, the patches, and what these need."""
        parts, patches = (
            (_Part * len(self._parts))(),
            (_Patch * len(self._patches))(*(_Patch(*p) for p in self._patches)),
        )
        for p, (begin, array) in zip(parts, self._parts):
            p.where, p.at, p.bytes = address(array), begin, array.nbytes
        return parts, patches, [array for _, array in self._parts]


class Output(NamedTuple):
    """A batch that a segment gives out. Of a new one `rows` are those of a batch in memory that begins at 0, and
    `about` are (2,) the bytes of that memory and whether all samples have one shape. Of one that is seen in the memory
    of another, `root`, they are distances from that."""

    edge: Edge
    spec: Spec
    rows: np.ndarray
    about: np.ndarray | None
    source: int  # INPUT or MEMORY,
    which: int  # and its number: where the batch, or `root`, lies
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
    """Made by exec/gpu/chain.py. `inputs` are the edges from outside, `scratch` bytes of the workspace that all
    launches share, at least. `more_scratch` are arrays (1,) of such bytes, and `inner` of what is told about tensors
    within the chain: by slots of the workspace, which they have in turn."""

    def __init__(
        self,
        session: Session,
        numbers: list[int],
        inputs: Sequence[Edge],
        n: int,
        image: Image,
        starts: Sequence[Started],
        scratch: int,
        more_scratch: Sequence[np.ndarray],
        inner: Sequence[Sequence[np.ndarray]],
        outputs: Sequence[Output],
    ):
        self.session, self.numbers = session, numbers
        self._inputs = list(inputs)
        self._makes = [o for o in outputs if o.root is None]
        self._views = [o for o in outputs if o.root is not None]
        parts, patches, alive = image.packed()
        self._at_workspace = _aligned(image.size)
        self._scratch, self._more_scratch, self._inner = scratch, more_scratch, inner
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
            r.rows, r.n, r.source, r.which = address(o.rows), len(o.rows), o.source, o.which
        self._plan = _Plan(
            *(ctypes.addressof(parts), image.size, ctypes.addressof(patches), ctypes.addressof(packed)),
            *(ctypes.addressof(rows), len(parts), len(patches), len(packed), len(rows)),
        )
        self._at = ctypes.addressof(self._plan)
        self._started = len(packed)
        self._n_rows = sum(len(o.rows) for o in outputs)
        self._alive = parts, patches, alive, packed, rows
        self._of_inputs, self._of_outputs = ctypes.c_uint64 * len(self._inputs), ctypes.c_uint64 * len(rows)
        self._of_memory = ctypes.c_uint64 * (OUTPUTS + len(self._makes) + len(inner))

    def _placed(self) -> tuple[int, list[int], list[Spec], list[int]]:
        """For a batch: bytes of the image with the workspace, bytes and specs of the batches given out, and where in
        the former the slots of inner tensors are."""
        scratch = max((int(x[0]) for x in self._more_scratch), default=0)
        end, inner = self._at_workspace + _aligned(max(scratch, self._scratch)), []
        for slot in self._inner:
            inner.append(end)
            end += _aligned(max(int(about[0]) for about in slot))
        sizes, specs = [], []
        for o in self._makes:
            nbytes, dense = o.about.tolist()  # type: ignore[union-attr]
            sizes.append(nbytes)
            specs.append(spec := o.spec.copy())
            spec._dense = bool(dense)
        return end, sizes, specs, inner

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
        ends = list(accumulate(map(_aligned, sizes))) if len(sizes) > 1 else ()
        if not ends or ends[-1] > _TOGETHER:
            blocks = gpu.take_all([*sizes, size] if self._started else sizes)
            return blocks, [block.address for block in blocks]
        blocks = gpu.take_all((ends[-1], size) if self._started else (ends[-1],))
        first = blocks[0].address
        return [*blocks[:1] * len(sizes), *blocks[1:]], [first, *(first + end for end in ends)]

    def fits(self, ctx: Context) -> bool:
        """Whether it is for the session that a batch is made in."""
        return self.session is ctx.gpu.session

    def run(self, ctx: Context, pool: kernels.Pool, begin: int, given: None = None) -> None:
        """Makes the batches given out, and has the GPU fill them. The plan began to be made at `begin`."""
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
        place = _Place(ctypes.addressof(inputs), ctypes.addressof(memory), ctypes.addressof(outputs))
        place.stream = stream.handle
        native = time.monotonic_ns()
        if base is not None:
            staging = gpu.pinned(self.nbytes)
            memory[IMAGE], memory[WORKSPACE] = base.address, base.address + self._at_workspace
            for k, at in enumerate(inner, OUTPUTS + len(made)):
                memory[k] = base.address + at
            place.staging = staging.address
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
            seen = whole.with_rows(o.spec.copy(), rows[k], whole.owners, names)
            seen.rows_address = outputs[k]
            values[o.edge] = seen
        ctx.timings.append(Timing("gpu", self.numbers, begin, time.monotonic_ns(), native))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED
