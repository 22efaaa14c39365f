# SPDX-License-Identifier: Apache-2.0
"""JPEG in two halves: CPU threads decode the Huffman codes of many pictures into one pinned block; the GPU computes the
pixels, identical to those of the CPU's decoder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ....core import kernels
from ....core.batch import Batch, Spec
from ....core.rows import address
from ....gpu.batch import DeviceBatch
from ....gpu.session import GpuPass, Packing

_BLOCKS_A_GROUP = 256  # 8 x 8 blocks per thread block; see jpeg_pixels.cu
_PIXELS_A_GROUP = 8192
_MOST_GROUPS = 64


@cache
def record_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("decode/jpeg_coefficients.h"), "JpegRecord")[0]


@cache
def pixels_type() -> np.dtype:
    return kernels.read_struct(kernels.read_header("decode/jpeg_pixels.h"), "JpegPixelsArgs")[0]


def decode_halves(
    gpu: GpuPass, pool: kernels.Pool, args: np.ndarray, encoded: Batch, out: DeviceBatch
) -> tuple[np.ndarray, kernels.Outcome]:
    """Decodes pictures into `out`. Returns which (n,) were refused and not written: all that are not valid baseline
    files."""
    n = len(args)
    kernel = kernels.kernel("decode/jpeg_coefficients")
    records = np.zeros(n, record_type())
    rows = Spec.uniform(n, (records.itemsize,), "u1").packed()
    rows["data"] = address(records) + records.itemsize * np.arange(n, dtype="u8")
    shape = out.spec.shape
    # Rarely more than three bytes of packed coefficients per byte of the file, plus positions of blocks.
    blocks = shape[:, 0] * shape[:, 1] // 64 * 3
    capacity = int((encoded.spec.volumes() * 3 + blocks * 4).sum()) + 4096 * n
    arena = gpu.pinned(capacity)
    used = np.zeros(1, "i8")
    columns: dict[str, Any] = {k: args[k] for k in ("y", "x", "format", "height", "width", "orientation")}
    columns |= {"window_height": shape[:, 0], "window_width": shape[:, 1], "gray": shape[:, 2] == 1}
    columns |= {"arena": arena.address, "capacity": capacity, "used": address(used)}
    arguments, _ = kernel.rows(n, columns)
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    step = kernels.Step(kernel, arguments, [(rows, -1)], [(np.ascontiguousarray(encoded.rows), -1)])
    pool.run([step], n, outcome)
    _to_pixels(gpu, args, records, arena.address, int(used[0]), out)
    return (records["bytes"] == 0) | (outcome.status != 0), outcome


def _to_pixels(gpu: GpuPass, args: np.ndarray, records: np.ndarray, arena: int, nbytes: int, out: DeviceBatch) -> None:
    """The GPU's half: one copy of all coefficients, one of all arguments, two launches."""
    if not nbytes:
        return
    n = len(args)
    block = gpu.take(nbytes)
    gpu.stream.upload(block.address, arena, nbytes)
    kernel_args = np.zeros(n, pixels_type())
    for k in ("y", "x", "height", "width", "orientation", "output_type"):
        kernel_args[k] = args[k]
    planes = 64 * records["n_blocks"].astype("i8")
    kernel_args["planes"] = np.cumsum(planes) - planes
    packed = Spec(records["bytes"][:, None], "u1").packed()
    packed["data"] = block.address + records["offset"]
    packing = Packing()
    at_out, at_in = packing.add(out.rows), packing.add(packed)
    at_records, at_args = packing.add(records), packing.add(kernel_args)
    where = packing.place(gpu)
    kernel_args["record"] = packing.base + at_records + records.itemsize * np.arange(n, dtype="u8")
    packing.send(gpu)
    scratch = gpu.take(int(planes.sum()) or 1)
    tensors, rows = [packing.base + at_out, packing.base + at_in], [packing.base + at_args]
    _launch_pixels(gpu, out.spec, int(records["n_blocks"].max()), tensors, rows, scratch.address)
    del block, where, scratch


def _launch_pixels(
    gpu: GpuPass, spec: Spec, most_blocks: int, tensors: Sequence[int], rows: Sequence[int], scratch: int
) -> None:
    """Launches the two kernels that compute pixels from coefficients."""
    n, source = spec.n, pixels_source(spec.dtype.name)
    groups = min(-(-most_blocks // _BLOCKS_A_GROUP), _MOST_GROUPS)
    gpu.launch(source, "jpeg_blocks", (max(groups, 1), n, 1), (256, 1, 1), 0, tensors, rows, scratch, n)
    pixels = int((spec.shape[:, 0] * spec.shape[:, 1]).max())
    groups = min(-(-pixels // _PIXELS_A_GROUP), _MOST_GROUPS)
    gpu.launch(source, "jpeg_pixels", (max(groups, 1), n, 1), (256, 1, 1), 0, tensors, rows, scratch, n)


@cache
def pixels_source(dtype: str) -> str:
    """Source of the kernels that compute pixels of a type."""
    types = {"uint8": "uint8_t", "int8": "int8_t", "uint16": "uint16_t", "int16": "int16_t", "uint32": "uint32_t"}
    types |= {"int32": "int32_t", "float32": "float"}
    return f'#define OUT {types[dtype]}\n#include "decode/jpeg_pixels.cu"\n'
