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
from ...core.rows import TENSOR, ArgumentRows, address, reserve
from ...gpu.batch import DeviceBatch
from ...gpu.driver import OutOfDeviceMemory, check
from ...gpu.memory import Block
from ...gpu.session import GpuPass, LaunchArgument, Packing
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
_START = np.dtype(
    [("function", "u8"), ("grid", "u4", 3), ("block", "u4", 3), ("shared", "u4"), ("zeroed", "i8"), ("argument", "i8")],
    align=True,
)
_ARRAYS = [(name, "u8") for name in ("parts", "patches", "starts")]
_BYTES = [(name, "i8") for name in ("image_bytes", "output_bytes")]
_PLAN = np.dtype([*_ARRAYS, *_BYTES, *((f"n_{name}", "i4") for name, _ in _ARRAYS)], align=True)


class Image(Packing):
    """Arrays that are read and copied to the GPU each time a plan is started, as one image. Offsets in it become
    addresses then."""

    def __init__(self) -> None:
        super().__init__()
        self._patches: list[tuple[int, int, int, int]] = []

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
        self._inner = [[at.about[e] for e in slots if slots[e] == k] for k in range(len({*slots.values()}))]
        self._scratch = at.more["scratch"]
        image = Image()
        starts = _starts(chain, ctx, at, image, memory)
        self._outputs = Outputs(chain, ctx, at)
        # Native code copies their rows back: the first parts of the image, without gaps, as 16 bytes divide a row.
        output_bytes = len(wiring.allocated) * ctx.n * TENSOR.itemsize
        parts, patches, alive = image.packed()
        self.nbytes, self._at_workspace = image.size, _aligned(image.size)
        arrays = parts, patches, starts
        self._plan = np.array([(*map(address, arrays), image.size, output_bytes, *map(len, arrays))], _PLAN)
        self._at = address(self._plan)
        self._started, self._n = len(starts), ctx.n
        self._alive = arrays, alive
        self._of_memory = ctypes.c_uint64 * (OUTPUTS + len(wiring.allocated) + len(self._inner))

    def _workspace(self) -> tuple[int, list[int]]:
        """For a batch: bytes of image and workspace, and the offsets of the slots of inner tensors."""
        scratch = max((int(x[0]) for x in self._scratch), default=0)
        end, inner = self._at_workspace + _aligned(scratch), []
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
        if not outputs:  # views of the inputs
            self._outputs.publish({}, values)
            return
        for e in self._inputs:
            values[e].used_on(stream)
        size, inner = self._workspace()
        placed = self._outputs.placed()
        sizes = [nbytes for nbytes, _ in placed[: len(outputs)]]
        try:
            blocks, places = self._blocks(gpu, size, sizes)
        except OutOfDeviceMemory as e:
            e.asked, e.shared = [(o.edge[0], nbytes) for o, nbytes in zip(outputs, sizes)], size
            raise
        base = blocks.pop() if self._started else None
        memory = self._of_memory()
        all_rows, at = reserve((len(outputs), self._n), TENSOR)
        made: dict[Edge, Batch] = {}
        for k, (o, (_, spec), rows, block) in enumerate(zip(outputs, placed, all_rows, blocks)):
            memory[OUTPUTS + k] = places[k]
            made[o.edge] = new = DeviceBatch.at(stream, spec, rows, block, at + k * rows.nbytes)
            new._packed = spec._dense
        native = time.monotonic_ns()
        if base is not None:  # else no output has rows
            staging = gpu.pinned(self.nbytes)
            memory[IMAGE], memory[WORKSPACE] = base.address, base.address + self._at_workspace
            for k, offset in enumerate(inner, OUTPUTS + len(made)):
                memory[k] = base.address + offset
            times = gpu.times()
            events = (0, 0) if times is None else (times[0].handle, times[1].handle)
            to = ctypes.addressof(memory), at, staging.address
            failed = kernels.library().start_plan(self._at, *to, stream.handle, *events)
            stream.asked()
            if failed:
                check(failed & 0xFFFFFFFF, f"starting launch {failed >> 32} of the operators {self.numbers}")
            if times is not None:
                gpu.session.timed(self.numbers[0], *times)
        self._outputs.publish(made, values)
        ctx.timings.append(Timing("gpu", self.numbers, begin, time.monotonic_ns(), native))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNED) * _ALIGNED


def _starts(chain: GpuChain, ctx: Context, at: PlanMemory, image: Image, memory: Mapping[Edge, int]) -> np.ndarray:
    """The launches, for native code. Adds the rows of outputs to the image, and what launches read."""
    launches, wiring, rows = at.launches, chain.wiring, {}
    for e in dict.fromkeys([*wiring.allocated, *(e for x in launches for e in (*x.tensors, *x.shapes))]):
        rows[e] = image.add(at.rows[e])
        which = memory.get(wiring.root.get(e, e))
        if which is not None:  # else they are addresses
            image.points(rows[e], TENSOR.itemsize, ctx.n, which)
    args = [_add_arguments(image, *of_call) for of_call in zip(at.kernels, at.arguments, at.pointers)]
    arguments, starts = np.zeros(len(launches), LaunchArgument), []
    first = image.add(arguments)
    for i, x in enumerate(launches):
        begin = first + i * arguments.itemsize
        given = (
            ("tensors", [rows[e] for e in (*x.tensors, *x.shapes)]),
            ("args", [args[c] for c in x.calls]),
        )
        for field, places in given:
            arguments[field][i, : len(places)] = places
            image.points(begin + getattr(LaunchArgument, field).offset, 8, len(places))
        image.points(begin + LaunchArgument.scratch.offset, 8, 1, WORKSPACE)
        function = ctx.gpu.session.function(x.source, x.entry, x.shared)
        starts.append((function, x.grid, x.block, x.shared, x.scratch if x.zero else 0, begin))
    arguments["n"] = ctx.n
    return np.array(starts, _START)


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
