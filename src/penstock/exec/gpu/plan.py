# SPDX-License-Identifier: Apache-2.0
"""The plan of a segment on the GPU: an image of all rows and arrays that its launches read, the addresses within it,
and the launches. Starting it for a batch is one native call (kernels/core/gpu_plan.cpp). Rules fill the arrays for one
batch, a program for each later one; they are read when the plan is started."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.errors import InternalError
from ...core.plan_memory import PlanMemory
from ...core.rows import TENSOR, ArgumentRows, address, allocate
from ...gpu.batch import DeviceBatch
from ...gpu.driver import OutOfDeviceMemory, check
from ...gpu.memory import Block
from ...gpu.session import GpuPass, LaunchArgument, Packing, Session
from ...graph.node import Edge
from ..context import Context, Timing
from ..cpu.plan import Outputs
from ..cpu.wiring import share_slots

if TYPE_CHECKING:
    from .chain import GpuChain

IMAGE, WORKSPACE, OUTPUTS = range(3)  # memory regions: image, workspace, first output
_ALIGNED = 256
_TOGETHER = 128 << 10  # output batches of up to this many bytes in total share a block


# Structs of kernels/core/gpu_plan.cpp.
_PATCH = np.dtype([("at", "i8"), ("step", "i8"), ("n", "i8"), ("which", "i8")])
_PART = np.dtype([("where", "u8"), ("at", "i8"), ("bytes", "i8")])
_ROWS = np.dtype([("rows", "u8"), ("n", "i8")])
_START = np.dtype(
    [("function", "u8"), ("grid", "u4", 3), ("block", "u4", 3), ("shared", "u4")]
    + [("n_tensors", "i4"), ("n_args", "i4"), ("has_scratch", "i4"), ("zeroed", "i8"), ("argument", LaunchArgument)],
    align=True,
)
_ARRAYS = [(name, "u8") for name in ("parts", "patches", "starts", "outputs")]
_PLAN = np.dtype([*_ARRAYS, ("image_bytes", "i8"), *((f"n_{name}", "i4") for name, _ in _ARRAYS)])


class Image(Packing):
    """Arrays that are read and copied to the GPU each time a plan is started, as one image. Offsets in it become
    addresses then."""

    def __init__(self) -> None:
        super().__init__()
        self._patches: list[tuple[int, int, int, int]] = []

    def add_rows(self, rows: np.ndarray, which: int | None) -> int:
        """As `add`, for tensor rows whose data are offsets from memory `which`; None: they are addresses."""
        at = self.add(rows)
        if which is not None:
            self.points(at, rows.itemsize, len(rows), which)
        return at

    def points(self, at: int, step: int, n: int, which: int = IMAGE) -> None:
        """Marks n numbers, from `at` on, as offsets from memory `which`."""
        self._patches.append((at, step, n, which))

    def packed(self) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """The parts, the patches, and the arrays that must stay alive."""
        if not all(array.flags.c_contiguous for _, array in self._parts):
            raise InternalError("a part of a plan is not contiguous")
        parts = [(address(array), begin, array.nbytes) for begin, array in self._parts]
        return np.array(parts, _PART), np.array(self._patches, _PATCH), [array for _, array in self._parts]


class GpuPlan:
    """The plan of n rows in the arrays `at`, which can be refilled for another batch. Used by one batch at a time."""

    def __init__(self, chain: GpuChain, ctx: Context, at: PlanMemory):
        wiring = chain.wiring
        self.numbers, self._inputs = [n.number for n in chain.nodes], chain.inputs
        memory = {e: OUTPUTS + k for k, e in enumerate(wiring.allocated)}
        slots = share_slots([wiring.inner(x.tensors) for x in at.launches])
        memory.update((e, OUTPUTS + len(wiring.allocated) + k) for e, k in slots.items())
        # `about` of tensors within the chain, by workspace slot; they use a slot one after the other.
        self._inner: list[list[np.ndarray]] = [[] for _ in set(slots.values())]
        for e, k in slots.items():
            self._inner[k].append(at.about[e])
        # Minimum bytes of scratch shared by all launches, and arrays (1,) with further such sizes.
        self._scratch, self._more_scratch = max((x.scratch for x in at.launches), default=0), at.more["scratch"]
        image = Image()
        starts = _starts(chain, ctx.gpu.session, ctx.n, at, image, memory)
        self._outputs = Outputs(chain, ctx, at)
        rows = np.array([(address(o.rows), len(o.rows)) for o in self._outputs.made], _ROWS)
        parts, patches, alive = image.packed()
        self.nbytes, self._at_workspace = image.size, _aligned(image.size)
        arrays = parts, patches, starts, rows
        self._plan = np.array([(*map(address, arrays), image.size, *map(len, arrays))], _PLAN)
        self._at = address(self._plan)
        self._started, self._n = len(starts), ctx.n
        self._alive = arrays, alive
        self._of_outputs = ctypes.c_uint64 * len(rows)
        self._of_memory = ctypes.c_uint64 * (OUTPUTS + len(rows) + len(self._inner))

    def _workspace(self) -> tuple[int, list[int]]:
        """For a batch: bytes of image and workspace, and the offsets of the slots of inner tensors."""
        scratch = max((int(x[0]) for x in self._more_scratch), default=0)
        end, inner = self._at_workspace + _aligned(max(scratch, self._scratch)), []
        for slot in self._inner:
            inner.append(end)
            end += _aligned(max(int(about[0]) for about in slot))
        return end, inner

    def _blocks(self, gpu: GpuPass, size: int, sizes: Sequence[int]) -> tuple[list[Block], list[int]]:
        """Allocates memory for the output batches and, if there are launches, for the image as the last block. Returns
        the blocks and each batch's address. Small batches share a block."""
        ends = list(accumulate(map(_aligned, sizes))) if len(sizes) > 1 else ()
        if not ends or ends[-1] > _TOGETHER:
            blocks = gpu.take_all([*sizes, size] if self._started else sizes)
            return blocks, [block.address for block in blocks]
        blocks = gpu.take_all((ends[-1], size) if self._started else (ends[-1],))
        first = blocks[0].address
        return [*blocks[:1] * len(sizes), *blocks[1:]], [first, *(first + end for end in ends)]

    def run(self, ctx: Context, pool: kernels.Pool, begin: int, given: None = None) -> None:
        """Makes the output batches and starts the launches that fill them. `begin` is when planning started."""
        gpu: GpuPass = ctx.gpu
        values, stream, outputs = ctx.values, gpu.stream, self._outputs.made
        for e in self._inputs:
            values[e].used_on(stream)
        size, inner = self._workspace()
        placed = [o.placed() for o in outputs]
        sizes = [nbytes for nbytes, _ in placed]
        try:
            blocks, places = self._blocks(gpu, size, sizes)
        except OutOfDeviceMemory as e:
            e.asked, e.shared = [(o.edge[0], nbytes) for o, nbytes in zip(outputs, sizes)], size
            raise
        base = blocks.pop() if self._started else None
        memory, rows_at = self._of_memory(), self._of_outputs()
        all_rows, at = allocate((len(outputs), self._n), TENSOR)
        made: dict[Edge, Batch] = {}
        for k, (o, (_, spec), rows, block) in enumerate(zip(outputs, placed, all_rows, blocks)):
            memory[OUTPUTS + k], rows_at[k] = places[k], at + k * self._n * TENSOR.itemsize
            made[o.edge] = new = DeviceBatch.at(stream, spec, rows, block, rows_at[k])
            new._packed = spec._dense
        native = time.monotonic_ns()
        staging = None
        if base is not None:
            staging = gpu.pinned(self.nbytes)
            memory[IMAGE], memory[WORKSPACE] = base.address, base.address + self._at_workspace
            for k, offset in enumerate(inner, OUTPUTS + len(made)):
                memory[k] = base.address + offset
        times = gpu.times() if self._started else None
        if self._started or outputs:
            events = (0, 0) if times is None else (times[0].handle, times[1].handle)
            to = 0 if staging is None else staging.address
            arrays = ctypes.addressof(memory), ctypes.addressof(rows_at)
            failed = kernels.library().start_plan(self._at, *arrays, to, stream.handle, *events)
            stream.asked()
            if failed:
                check(failed & 0xFFFFFFFF, f"starting launch {failed >> 32} of the operators {self.numbers}")
        if times is not None:
            gpu.session.timed(self.numbers[0], *times)
        self._outputs.publish(made, values)
        ctx.timings.append(Timing("gpu", self.numbers, begin, time.monotonic_ns(), native))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED


def _starts(
    chain: GpuChain, session: Session, n: int, at: PlanMemory, image: Image, memory: Mapping[Edge, int]
) -> np.ndarray:
    """The launches, for native code. Adds what they read to the image."""
    launches = at.launches
    starts = np.zeros(len(launches), _START)
    if not launches:
        return starts
    args = [_add_arguments(image, *of_call) for of_call in zip(at.kernels, at.arguments, at.pointers)]
    root = chain.wiring.root
    edges = dict.fromkeys(e for x in launches for e in x.tensors)
    rows = {e: image.add_rows(at.rows[e], memory.get(root.get(e, e))) for e in edges}
    shapes = {e: image.add(tensors.array) for e, tensors in at.shapes.items()}
    begun = set()  # groups, by first call: the launches of a group share their scratch
    for start, x in zip(starts, launches):
        group = x.calls[0]
        if x.scratch and group not in begun:
            begun.add(group)
            start["zeroed"] = max(o.scratch for o in launches if o.calls[0] == group) if x.zero else 0
        start["has_scratch"] = group in begun
        start["function"] = session.function(x.source, x.entry, x.shared)
        start["grid"], start["block"], start["shared"] = x.grid, x.block, x.shared
        places = [rows[e] for e in x.tensors] + [shapes[e] for e in x.shapes]
        argument = start["argument"]
        argument["n"], start["n_tensors"], start["n_args"] = n, len(places), len(x.calls)
        argument["tensors"][: len(places)], argument["args"][: len(x.calls)] = places, [args[c] for c in x.calls]
    return starts


def _add_arguments(image: Image, kernel: kernels.Kernel, rows: ArgumentRows, pointers: dict[str, np.ndarray]) -> int:
    """Adds argument rows, and the arrays behind their pointers, to the image; returns the rows' offset."""
    n, step, fields = len(rows.array), rows.array.itemsize, rows.array.dtype.fields
    assert fields is not None
    for field, values in pointers.items():
        between = 0 if len(values) == 1 else values.strides[0]
        rows.views[field][...] = image.add(values) + between * np.arange(n, dtype="u8")
    at = image.add(rows.array)
    for field in pointers:
        image.points(at + fields[field][1], step, n)
    return at
