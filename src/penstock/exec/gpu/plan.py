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
from ...gpu.launch import MAX_ARGS, MAX_TENSORS
from ...gpu.memory import Block
from ...gpu.session import GpuPass, Session
from ..context import Context, Timing
from ..cpu.wiring import Edge
from ..origins import Origin, names_of

INPUT, MEMORY = range(2)
IMAGE, WORKSPACE, OUTPUTS = range(3)  # memory: the image's, the workspace's, the first output's
_ALIGNED = 256
_TOGETHER = 128 << 10  # bytes of all batches given out that share a block


# The structures of kernels/core/gpu_plan.cpp.
_PATCH = np.dtype([("at", "i8"), ("step", "i8"), ("n", "i8"), ("which", "i8")])
_PART = np.dtype([("where", "u8"), ("at", "i8"), ("bytes", "i8")])
_ROWS = np.dtype([("rows", "u8"), ("n", "i8"), ("source", "i4"), ("which", "i4")])
_LAUNCH = [("tensors", "u8", MAX_TENSORS), ("args", "u8", MAX_ARGS), ("scratch", "u8"), ("n", "i4"), ("unused", "i4")]
_NUMBERS = [("shared", "u4"), ("n_tensors", "i4"), ("n_args", "i4"), ("has_scratch", "i4"), ("zeroed", "i8")]
_START = np.dtype([("function", "u8"), ("grid", "u4", 3), ("block", "u4", 3), *_NUMBERS, *_LAUNCH], align=True)
_ARRAYS = [(name, "u8") for name in ("parts", "patches", "starts", "outputs")]
_PLAN = np.dtype([*_ARRAYS, ("image_bytes", "i8"), *((f"n_{name}", "i4") for name, _ in _ARRAYS)])


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

    def packed(self) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """The parts, the patches, and what these need."""
        parts = [(address(array), begin, array.nbytes) for begin, array in self._parts]
        return np.array(parts, _PART), np.array(self._patches, _PATCH), [array for _, array in self._parts]


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
        packed = np.zeros(len(starts), _START)
        for s, x in zip(packed, starts):
            s["function"], s["grid"], s["block"], s["shared"] = x.function, x.grid, x.block, x.shared
            s["n_tensors"], s["tensors"][: len(x.tensors)] = len(x.tensors), x.tensors
            s["n_args"], s["args"][: len(x.args)] = len(x.args), x.args
            s["has_scratch"], s["scratch"], s["zeroed"], s["n"] = x.scratch is not None, x.scratch or 0, x.zeroed, n
        made = [(address(o.rows), len(o.rows), o.source, o.which) for o in (*self._makes, *self._views)]
        rows = np.array(made, _ROWS)
        arrays = parts, patches, packed, rows
        self._plan = np.array([(*map(address, arrays), image.size, *map(len, arrays))], _PLAN)
        self._at = address(self._plan)
        self._started = len(packed)
        self._n_rows = sum(len(o.rows) for o in outputs)
        self._alive = arrays, alive
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
        native = time.monotonic_ns()
        staging = None
        if base is not None:
            staging = gpu.pinned(self.nbytes)
            memory[IMAGE], memory[WORKSPACE] = base.address, base.address + self._at_workspace
            for k, at in enumerate(inner, OUTPUTS + len(made)):
                memory[k] = base.address + at
        times = gpu.times() if self._started else None
        if self._started or self._n_rows:
            arrays = ctypes.addressof(inputs), ctypes.addressof(memory), ctypes.addressof(outputs)
            events = (0, 0) if times is None else (times[0].handle, times[1].handle)
            to = 0 if staging is None else staging.address
            failed = kernels.library().start_plan(self._at, *arrays, to, stream.handle, *events)
            stream.asked()
            if failed:
                check(failed & 0xFFFFFFFF, f"starting launch {failed >> 32} of the operators {self.numbers}")
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
