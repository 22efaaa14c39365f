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
from ..core.batch import Batch, Spec
from ..core.rows import TENSOR
from ..gpu.batch import DeviceBatch
from ..gpu.driver import Event
from ..gpu.memory import Block
from .gpu import GpuPass
from .gpu_launch import launch
from .jpeg_halves import launch_pixels, pixels_type, record_type

_THREADS = 512  # of a block; see jpeg_huffman.cu
_SLACK = 32  # kScanSlack
# Words that a byte of the file may become, and those of any picture: what needs more is left to the CPU.
_WORDS_A_BYTE, _MORE_WORDS = 3, 64
_SOURCE = '#include "decode/jpeg_huffman.cu"\n'


@cache
def _scan_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("decode/jpeg_scan.h"), "JpegScan")[0]


@cache
def _huffman_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("decode/jpeg_huffman.h"), "JpegHuffmanArgs")[0]


class Verdict(NamedTuple):
    """What the GPU says of pictures that it decodes between two timed events: in the end, `bad` (n,) is not 0 where the
    data was irregular."""

    bad: np.ndarray
    begin: Event
    end: Event
    memory: Block

    def wait(self) -> np.ndarray:
        """Blocks until it is known which pictures (n,) were irregular."""
        self.end.wait()
        return self.bad != 0


def decode_scans(
    gpu: GpuPass, pool: kernels.Pool, args: np.ndarray, encoded: Batch, out: DeviceBatch
) -> tuple[np.ndarray, Verdict | None]:
    """Decodes pictures into their places in `out`. Returns which (n,) it did not take and nothing is written for, and
    the Verdict on the others."""
    n, sizes = len(args), encoded.spec.volumes()
    # One block: what kernels read of the pictures, then the scans.
    types = (record_type(), _scan_type(), TENSOR, TENSOR, _huffman_type(), pixels_type(), np.dtype("u1"))
    starts, size = [], 0
    for t in types:
        starts.append(size)
        size += t.itemsize * n + 15 & ~15
    room = sizes + (_SLACK + 15) & ~15
    at_data = size + np.cumsum(room) - room
    size += int(room.sum())
    arena = gpu.pinned(size)
    memory = memoryview((ctypes.c_char * size).from_address(arena.address))
    records, scans, at_out, at_packed, huffman, pixels, bad = (
        np.ndarray(n, t, memory, start) for t, start in zip(types, starts)
    )
    step, alive = _step(args, encoded, out.spec, arena.address, starts, at_data)
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    pool.run([step], n, outcome)
    del alive
    taken = records["mcu_blocks"] > 0
    taken &= outcome.status == 0
    if not taken.any():
        return ~taken, None
    block = gpu.take(size)
    base, numbers = block.address, np.arange(n, dtype="u8")
    bad[...] = 0
    places, planes = records["n_places"].astype("i8"), 64 * records["n_blocks"].astype("i8")
    words = np.where(taken, _WORDS_A_BYTE * sizes + places + _MORE_WORDS, 0)
    coefficients = 4 * places + 2 * words + 15 & ~15
    ends = np.cumsum(coefficients)
    decoded, scratch = gpu.take(int(ends[-1])), gpu.take(int(planes.sum()))
    at_out[...] = out.rows
    at_packed[...] = Spec(coefficients[:, None], "u1").packed()
    at_packed["data"] = (decoded.address + ends - coefficients).astype("u8")
    place_of = base + starts[0] + records.itemsize * numbers
    huffman["record"], huffman["scan"] = place_of, base + starts[1] + scans.itemsize * numbers
    huffman["data"], huffman["status"] = base + at_data, base + starts[6] + numbers
    huffman["most_words"] = words
    for k in ("y", "x", "height", "width", "orientation", "output_type"):
        pixels[k] = args[k]
    pixels["planes"], pixels["record"] = np.cumsum(planes) - planes, place_of
    begin = gpu.timer()
    gpu.stream.upload(base, arena.address, size)
    launch(gpu, _SOURCE, "jpeg_huffman", (1, n, 1), (_THREADS, 1, 1), 0, [base + starts[3]], [base + starts[4]], 0, n)
    tensors, rows = [base + starts[2], base + starts[3]], [base + starts[5]]
    launch_pixels(gpu, out.spec, int(records["n_blocks"].max()), tensors, rows, scratch.address)
    told = gpu.pinned(n)
    gpu.stream.download(told.address, base + starts[6], n)
    return ~taken, Verdict(
        np.frombuffer(memoryview((ctypes.c_ubyte * n).from_address(told.address)), "u1"), begin, gpu.timer(), told
    )


def _step(args: np.ndarray, encoded: Batch, spec: Spec, arena: int, starts: list[int], at_data: np.ndarray):
    """The CPU's part: records, scans and data into the block at `arena`."""
    n, kernel = len(args), kernels.kernel("decode/jpeg_scan")
    shape, numbers = spec.shape, np.arange(n, dtype="u8")
    outs = []
    for t, start in ((record_type(), starts[0]), (_scan_type(), starts[1])):
        rows = Spec.uniform(n, (t.itemsize,), "u1").packed()
        rows["data"] = arena + start + t.itemsize * numbers
        outs.append((rows, -1))
    columns: dict[str, Any] = {k: args[k] for k in ("y", "x", "format", "height", "width", "orientation")}
    columns |= {"window_height": shape[:, 0], "window_width": shape[:, 1], "gray": shape[:, 2] == 1}
    columns["data"] = arena + at_data
    rows, alive = kernel.rows(n, columns)
    return kernels.Step(kernel, rows, outs, [(np.ascontiguousarray(encoded.rows), -1)]), alive
