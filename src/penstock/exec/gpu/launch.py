# SPDX-License-Identifier: Apache-2.0
"""Launching a kernel: every one takes a `struct Launch` of kernels/core/gpu.h."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from .session import GpuPass

_MAX_TENSORS, _MAX_CALLS = 16, 12


class _Argument(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.c_uint64 * _MAX_TENSORS),
        ("args", ctypes.c_uint64 * _MAX_CALLS),
        ("scratch", ctypes.c_uint64),
        ("n", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    ]


def launch(
    gpu: GpuPass,
    source: str,
    entry: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    tensors: Sequence[int],
    args: Sequence[int],
    scratch: int,
    n: int,
) -> None:
    """Launches kernel `entry` of `source` for n rows. `tensors` and `args` are addresses of rows on the GPU."""
    argument = _Argument(n=n, scratch=scratch)
    argument.tensors[: len(tensors)] = list(tensors)
    argument.args[: len(args)] = list(args)
    gpu.stream.launch(gpu.session.function(source, entry, shared), grid, block, shared, argument)
