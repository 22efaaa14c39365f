# SPDX-License-Identifier: Apache-2.0
"""JPEG by the GPU: CPU threads read headers and copy the scans into one pinned block; the GPU decodes the Huffman codes
and computes the pixels, identical to those of the CPU's decoder. Irregular pictures are known when the GPU has
finished."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from ....core import kernels
from ....core.batch import Batch, view
from ....core.rows import TENSOR, address, allocate
from ....gpu.batch import DeviceBatch
from ....gpu.deferred_errors import DeferredErrors, Memory
from ....gpu.driver import check
from ....gpu.memory import Block
from ....gpu.session import GpuPass
from .jpeg_halves import pixels_source, pixels_type, record_type

_BYTE = np.dtype("u1")
# Indices of the fields of `JpegScanBatch`, 8 bytes each. The fields before `_FIRST` are constant.
_FIRST = 10
_SIZE, _HOST, _DEVICE, _SCRATCH, _ROOM, _WANTED, _TAKEN, _MOST_BLOCKS, _LAUNCHED, _N_FIELDS = range(_FIRST, _FIRST + 10)
# Scratch is allocated before its required size is known: factors of the previous requirement, and of the shrinking
# estimate.
_MORE, _LESS = 1.125, 0.98
_ALIGNED = 256
_SOURCE = '#include "decode/jpeg_huffman.cu"\n'


@cache
def _type(header: str, name: str) -> np.dtype:
    return kernels.read_struct(kernels.read_header(f"decode/{header}.h"), name)[0]


@cache
def _layout(n: int) -> tuple[dict[str, int], int]:
    """Offsets of the parts of a batch's block, and of the scans."""
    types = {"records": record_type(), "scans": _type("jpeg_scan", "JpegScan")}
    types |= {"huffman": _type("jpeg_huffman", "JpegHuffmanArgs"), "pixels": pixels_type()}
    types |= {"statuses": _BYTE, "rows": TENSOR}
    starts, size = {}, 0
    for name, t in types.items():
        starts[name] = size
        size += t.itemsize * n + 15 & ~15
    return starts, size


class Scans:
    """State for decoding n pictures, reused between batches, by one batch at a time."""

    def __init__(self, n: int):
        self.n = n
        self._starts, self._begin = _layout(n)
        self._rows, self._at_rows = allocate(n, _type("jpeg_scan", "JpegScanArgs"))
        self._batch = (ctypes.c_int64 * _N_FIELDS)()
        self._at_batch = ctypes.addressof(self._batch)
        self._rows["batch"], self._rows["number"] = self._at_batch, np.arange(n)
        self._batch[: _FIRST - 3] = [n, *self._starts.values()]
        self._room = 0
        step = kernels.Step(kernels.kernel("decode/jpeg_scan"), self._rows, [], [(None, -1), (None, -1)])
        self._program = kernels.Program([step], n)
        self._files, self._pixels = self._program.slots[0]
        self._outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        self._chain = self._program.bind(self._outcome)
        self._functions_of: tuple[Any, np.dtype] | None = None

    def decode(
        self, gpu: GpuPass, pool: kernels.Pool, args: int, files: int, out: DeviceBatch, kept: Memory
    ) -> tuple[np.ndarray | None, DeferredErrors | None]:
        """Decodes pictures into `out`. `args`: address of their `DecodeArgs`; `files`: address of the rows of the
        encoded pictures; `kept`: memory of previous batches. Returns which (n,) were refused and not written (None: no
        picture), and the DeferredErrors of the others."""
        native, n, batch, stream = kernels.library(), self.n, self._batch, gpu.stream
        self._choose_functions(gpu, out.spec.dtype)
        size = native.plan_scans(files, n, args, self._begin, self._at_rows)
        nbytes = size + _ALIGNED + self._room
        host, block = kept.take(gpu, size, nbytes)
        memory: tuple[Block, ...] = host, block
        batch[_SIZE], batch[_HOST], batch[_DEVICE] = size, host.address, block.address
        batch[_SCRATCH], batch[_ROOM] = block.address + size + _ALIGNED & -_ALIGNED, self._room
        self._files.rows, self._pixels.rows = files, out.rows_address
        begin, end = gpu.session.new_timer(), gpu.session.new_timer()
        where = self._at_batch, out.rows_address, stream.handle, begin.handle, end.handle
        statuses = host.address + self._starts["statuses"]
        before = stream.work  # other threads may use the stream from here on
        code = native.decode_scans(pool.handle(), self._chain, *where)
        taken, wanted = batch[_TAKEN], batch[_WANTED]
        if wanted > self._room:
            scratch = gpu.take(wanted)
            memory = *memory, scratch
            batch[_SCRATCH] = scratch.address
            code = native.launch_scans(*where)
        self._room = max(int(wanted * _MORE), int(self._room * _LESS))
        stream.asked()
        check(code, "decoding JPEG on the GPU")
        undone = None
        if taken < n:
            at, of = host.address + self._starts["records"], record_type()
            undone = view(at, (n, of.itemsize), _BYTE, host).view(of)["mcu_blocks"][:, 0] == 0
            if not taken:
                return undone, None
        return undone, DeferredErrors(statuses, n, begin, end, memory, kept, stream, before)

    def _choose_functions(self, gpu: GpuPass, dtype: np.dtype) -> None:
        """Sets the GPU's kernels."""
        if self._functions_of is not None and self._functions_of == (gpu.session, dtype):
            return
        pixels = pixels_source(dtype.name)
        entries = (_SOURCE, "jpeg_huffman"), (pixels, "jpeg_blocks"), (pixels, "jpeg_pixels")
        self._batch[_FIRST - 3 : _FIRST] = [gpu.session.function(*e, 0) for e in entries]
        self._functions_of = gpu.session, dtype


def decode_scans(
    gpu: GpuPass, pool: kernels.Pool, args: np.ndarray, encoded: Batch, out: DeviceBatch
) -> tuple[np.ndarray | None, DeferredErrors | None]:
    """Like `Scans.decode`, with new state. `args`: rows of `DecodeArgs`."""
    args = np.ascontiguousarray(args)
    return Scans(len(args)).decode(gpu, pool, address(args), encoded.rows_address, out, Memory())
