# SPDX-License-Identifier: Apache-2.0
"""JPEG by the GPU: the CPU's threads read headers and copy the scans into one pinned block, the GPU decodes the Huffman
codes and makes the pixels, the same as those of the CPU's decoder. What it finds irregular is known when it is
through."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..core import kernels
from ..core.batch import Batch, view
from ..core.rows import TENSOR, address, allocate
from ..gpu.batch import DeviceBatch
from ..gpu.driver import check
from ..gpu.memory import Block
from ..gpu.stream import Event
from .gpu import GpuPass
from .jpeg_halves import pixels_source, pixels_type, record_type

_BYTE = np.dtype("u1")
_SOURCE = '#include "decode/jpeg_huffman.cu"\n'


@cache
def _type(header: str, name: str) -> np.dtype:
    return kernels.read_struct(kernels.read_header(f"decode/{header}.h"), name)[0]


@cache
def _field() -> dict[str, int]:
    """The numbers of the fields of `JpegScanBatch`, all of 8 bytes."""
    return {name: i for i, name in enumerate(_type("jpeg_scan", "JpegScanBatch").names or ())}


@cache
def _layout(n: int) -> tuple[dict[str, int], int]:
    """Where the parts of a batch's block begin, and where the scans do."""
    types = {"records": record_type(), "scans": _type("jpeg_scan", "JpegScan")}
    types |= {"huffman": _type("jpeg_huffman", "JpegHuffmanArgs"), "pixels": pixels_type()}
    types |= {"statuses": _BYTE, "rows": TENSOR}
    starts, size = {}, 0
    for name, t in types.items():
        starts[name] = size
        size += t.itemsize * n + 15 & ~15
    return starts, size


class Verdict(NamedTuple):
    """What the GPU says of n pictures that it decodes between two timed events: in the end, the bytes at `address` are
    not 0 where the data was irregular."""

    address: int
    n: int
    begin: Event
    end: Event
    memory: Block

    def wait(self) -> np.ndarray | None:
        """Blocks until it is known which pictures (n,) were irregular; None: none was."""
        self.end.wait()
        statuses = ctypes.string_at(self.address, self.n)
        return np.frombuffer(statuses, _BYTE) != 0 if statuses.strip(b"\0") else None


class Scans:
    """What it takes to have n pictures decoded: kept from batch to batch. Used by one batch at a time."""

    def __init__(self, n: int):
        self.n = n
        self._starts, self._begin = _layout(n)
        self._rows, self._at_rows = allocate(n, _type("jpeg_scan", "JpegScanArgs"))
        field = _field()
        self._batch = (ctypes.c_int64 * len(field))()
        self._at_batch = ctypes.addressof(self._batch)
        self._rows["batch"], self._rows["number"] = self._at_batch, np.arange(n)
        for name, start in self._starts.items():
            self._batch[field[name]] = start
        self._batch[field["n"]] = n
        self._scratch, self._taken = field["scratch"], field["taken"]
        step = kernels.Step(kernels.kernel("decode/jpeg_scan"), self._rows, [], [(None, -1), (None, -1)])
        self._program = kernels.Program([step], n)
        self._files, self._pixels = self._program.slots[0]
        self._outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        self._chain = self._program.bind(self._outcome)
        self._functions_of: tuple[Any, np.dtype] | None = None

    def decode(
        self, gpu: GpuPass, pool: kernels.Pool, args: int, files: int, out: DeviceBatch
    ) -> tuple[np.ndarray | None, Verdict | None]:
        """Decodes pictures into their places in `out`; `args` is the address of their `DecodeArgs`, `files` that of the
        rows of the encoded ones. Returns which (n,) it did not take and nothing is written for (None: it took all), and
        the Verdict on the others."""
        native, n, batch, stream = kernels.library(), self.n, self._batch, gpu.stream
        self._choose_functions(gpu, out.spec.dtype)
        size = native.plan_scans(files, n, args, self._begin, self._at_rows)
        host, block = gpu.pinned(size), gpu.take(size)
        at_out = out.rows_address
        self._files.rows, self._pixels.rows = files, at_out
        taken = native.run_scans(pool.handle(), self._chain, self._at_batch, size, host.address, block.address)
        undone = None
        if taken < n:
            at, of = host.address + self._starts["records"], record_type()
            undone = view(at, (n, of.itemsize), _BYTE, host).view(of)["mcu_blocks"][:, 0] == 0
            if not taken:
                return undone, None
        scratch = gpu.take(batch[self._scratch])
        begin, end = gpu.session.event(), gpu.session.event()
        code = native.launch_scans(self._at_batch, at_out, scratch.address, stream.handle, begin.handle, end.handle)
        stream.asked()
        check(code, "decoding JPEG on the GPU")
        return undone, Verdict(host.address + self._starts["statuses"], n, begin, end, host)

    def _choose_functions(self, gpu: GpuPass, dtype: np.dtype) -> None:
        """Puts in the GPU's kernels."""
        if self._functions_of is not None and self._functions_of == (gpu.session, dtype):
            return
        field, pixels = _field(), pixels_source(dtype.name)
        for name, source, entry in (
            ("entropy_kernel", _SOURCE, "jpeg_huffman"),
            ("blocks_kernel", pixels, "jpeg_blocks"),
            ("pixels_kernel", pixels, "jpeg_pixels"),
        ):
            self._batch[field[name]] = gpu.session.function(source, entry, 0)
        self._functions_of = gpu.session, dtype


def decode_scans(
    gpu: GpuPass, pool: kernels.Pool, args: np.ndarray, encoded: Batch, out: DeviceBatch
) -> tuple[np.ndarray | None, Verdict | None]:
    """As `Scans.decode`, for some pictures once. `args` are rows of `DecodeArgs`."""
    args = np.ascontiguousarray(args)
    return Scans(len(args)).decode(gpu, pool, address(args), encoded.rows_address, out)
