# SPDX-License-Identifier: Apache-2.0
"""JPEG by the GPU: the CPU's threads read headers and copy the scans into one pinned block, the GPU decodes the Huffman
codes and makes the pixels, the same as those of the CPU's decoder. What it finds irregular is known when it is
through."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple

import numpy as np

from ..core import kernels
from ..core.batch import Batch, view
from ..core.rows import TENSOR, address
from ..gpu.batch import DeviceBatch
from ..gpu.memory import Block
from ..gpu.stream import Event
from .gpu import GpuPass
from .gpu_launch import launch
from .jpeg_halves import launch_pixels, pixels_type, record_type

_BYTE = np.dtype("u1")
_THREADS = 256  # of a block; see jpeg_huffman.cu
_SLACK = 32  # kScanSlack
_SOURCE = '#include "decode/jpeg_huffman.cu"\n'


@cache
def _type(header: str, name: str) -> np.dtype:
    return kernels.read_struct(kernels.read_header(f"decode/{header}.h"), name)[0]


@cache
def _layout(n: int) -> tuple[list[int], int]:
    """Where the parts of a batch's block begin, and where they end: records, scans, two kinds of arguments, statuses,
    rows of the output."""
    types = (record_type(), _type("jpeg_scan", "JpegScan"), _type("jpeg_huffman", "JpegHuffmanArgs"), pixels_type())
    starts, size = [], 0
    for t in (*types, _BYTE, TENSOR):
        starts.append(size)
        size += t.itemsize * n + 15 & ~15
    return starts, size


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
) -> tuple[np.ndarray | None, Verdict | None]:
    """Decodes pictures into their places in `out`; `args` are rows of `DecodeArgs`. Returns which (n,) it did not take
    and nothing is written for (None: it took all), and the Verdict on the others."""
    n = len(args)
    starts, size = _layout(n)
    rows = np.empty(n, _type("jpeg_scan", "JpegScanArgs"))
    room = encoded.spec.volumes()
    room += _SLACK + 15
    room &= ~15
    ends = np.cumsum(room)
    np.subtract(ends, room - size, out=rows["data"])
    size += int(ends[-1])
    host, block = gpu.pinned(size), gpu.take(size)
    batch = np.zeros(1, _type("jpeg_scan", "JpegScanBatch"))
    batch[0] = host.address, block.address, *starts[:5], 0, 0, 0
    rows["number"] = numbers = np.arange(n)
    rows["decode"], rows["batch"] = address(args) + args.itemsize * numbers, address(batch)
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    ins = [(np.ascontiguousarray(encoded.rows), -1), (out.rows, -1)]
    pool.run([kernels.Step(kernels.kernel("decode/jpeg_scan"), rows, [], ins)], n, outcome)
    scratch_size, taken, most_blocks = batch[["scratch", "taken", "most_blocks"]][0].item()
    undone = None
    if taken < n:
        read = view(host.address + starts[0], (n, record_type().itemsize), _BYTE, host).view(record_type())[:, 0]
        undone = read["mcu_blocks"] == 0
        if not taken:
            return undone, None
    ctypes.memmove(host.address + starts[5], address(out.rows), out.rows.nbytes)
    scratch, base, stream = gpu.take(scratch_size), block.address, gpu.stream
    begin = gpu.timer()
    stream.upload(base, host.address, size)
    launch(gpu, _SOURCE, "jpeg_huffman", (1, n, 1), (_THREADS, 1, 1), 0, (), (base + starts[2],), scratch.address, n)
    launch_pixels(gpu, out.spec, most_blocks, (base + starts[5],), (base + starts[3],), scratch.address)
    stream.download(host.address + starts[4], base + starts[4], n)
    return undone, Verdict(view(host.address + starts[4], (n,), _BYTE, host), begin, gpu.timer(), host)
