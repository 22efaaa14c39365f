# SPDX-License-Identifier: Apache-2.0
"""Copies samples on the GPU: few pieces by driver calls, many by one kernel launch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.rows import address, allocate
from . import compile
from .memory import pool
from .stream import Stream

_FEW = 3  # pieces; a launch, including its list of pieces, takes as long
_BLOCKS_OF_PIECE, _THREADS_OF_PIECE, _THREADS = 384, 32, 256  # as in kernels/core/copy_pieces.cu
_MOST_BLOCKS = 132 * 32
PIECE = np.dtype([("to", "u8"), ("from", "u8"), ("n", "u8")])
SOURCE, _ENTRY = '#include "core/copy_pieces.cu"\n', "copy_pieces"
_functions: dict[int, int] = {}  # by device number


class _Pieces(ctypes.Structure):
    _fields_ = [("pieces", ctypes.c_uint64), ("n", ctypes.c_uint32), ("longest", ctypes.c_uint32)]


def pieces_of(source: Batch, target: Batch) -> np.ndarray:
    """The pieces to copy from one batch to another: as few as the two layouts allow."""
    n = len(source)
    pieces, at = allocate(n, PIECE)
    if not n:
        return pieces
    itemsize = source.spec.dtype.itemsize
    found = kernels.library().pieces_to_copy(source.rows_address, target.rows_address, n, itemsize, at)
    pieces = pieces[:found]
    return pieces[pieces["n"] > 0]


def copy_samples(source: Batch, target: Batch, copy: Callable[[int, int, int], None]) -> None:
    """Copies all samples by calling `copy(to, address, nbytes)`."""
    for to, begin, nbytes in pieces_of(source, target).tolist():
        copy(to, begin, nbytes)


def copy_on_device(pieces: np.ndarray, stream: Stream) -> None:
    """Copies pieces on the GPU, on `stream`. Call inside `with device:`."""
    longest = int(pieces["n"].max(initial=0))
    if len(pieces) <= _FEW or longest >= 1 << 31 or not (function := _function(stream)):
        for to, begin, nbytes in pieces.tolist():
            stream.copy(to, begin, nbytes)
        return
    staging = pool(stream.device, True).take(pieces.nbytes, stream)
    listed = pool(stream.device).take(pieces.nbytes, stream)
    ctypes.memmove(staging.address, address(pieces), pieces.nbytes)
    stream.upload(listed.address, staging.address, pieces.nbytes)
    items = len(pieces) * (longest // (16 * _BLOCKS_OF_PIECE) + 1)
    blocks = min(-(-items * _THREADS_OF_PIECE // _THREADS), _MOST_BLOCKS)
    argument = _Pieces(listed.address, len(pieces), longest)
    stream.launch(function, (blocks, 1, 1), (_THREADS, 1, 1), 0, argument)


def _function(stream: Stream) -> int:
    """The copy kernel; 0 without a compiler."""
    device = stream.device
    if device.id not in _functions:
        try:
            image = compile.compile(SOURCE, _ENTRY, device.architecture)
        except compile.CompilerMissing:
            return 0
        _functions[device.id] = device.function(device.load(image), _ENTRY)
    return _functions[device.id]
