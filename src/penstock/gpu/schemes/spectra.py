# SPDX-License-Identifier: Apache-2.0
"""Distributes Fourier transforms over thread blocks; see kernels/audio/gpu_fft.h."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.traced import plain
from ..driver import shared_memory_of_a_block
from ..launch import Phase, grid_of, several_each
from .bounds import bound_of
from .tiles import MOST_SHARED

_ODD_RADICES = (3, 5, 7, 11, 13)
_THREADS, _MORE_THREADS = 256, 512  # per block; per block that works in scratch memory
_MOST_LANES = 32
# For compiled-in lengths: threads per multiprocessor and per block, as each uses many registers, and the shared memory
# with which two blocks fit on a multiprocessor.
_FIXED_THREADS, _MOST_FIXED_THREADS, _MOST_FIXED_SHARED = 512, 256, 113 << 10
_MOST_BLOCKS, _MOST_SCRATCH = 1056, 1 << 28  # with scratch memory: blocks, and total bytes


class Fixed(NamedTuple):
    """Transforms of a compiled-in length, `lanes` signals per block at a time."""

    nfft: int
    radices: list[int]
    lanes: int
    signals: np.ndarray  # (n,) signals per sample
    room: int  # bytes of shared memory

    @property
    def type(self) -> str:
        return f"FixedFft<{', '.join(map(str, (self.lanes, *self.radices)))}>"

    @property
    def free(self) -> int:
        """Free bytes after the powers, until the next signals are loaded."""
        pitch = self.lanes + (0 if self.lanes < 4 else 4)
        return 8 * _rows(self.radices) * (self.lanes + 1) - 4 * (self.nfft // 2 + 1) * pitch

    def phase(self, body: str) -> Phase:
        threads = -(-_units(self.radices) * self.lanes // 32) * 32
        resident = max(1, min(_FIXED_THREADS // threads, 2 * _MOST_FIXED_SHARED // self.room))
        grid = grid_of(several_each(-(-self.signals // self.lanes)), len(self.signals))
        return Phase(body, grid, (threads, 1, 1), shared=self.room, resident=resident)


def fixed(nfft: np.ndarray, signals: np.ndarray, least: int = 1, more: int = 0) -> Fixed | None:
    """Fixed transforms for `signals` (n,) real signals per sample of lengths `nfft` (n,), at least `least` at a time,
    with `more` extra bytes of shared memory; None if lengths differ or are not suitable."""
    length, most = int(plain(nfft).max(initial=1)), int(plain(signals).max(initial=1))
    found = _radices(length // 2) if length % 2 == 0 else None
    if not found or len(found) < 2 or not (nfft == length).all():
        return None
    radices = found

    def room(lanes: int) -> int:
        return 8 * _fixed_room(radices, lanes) + more

    limit = max(min(shared_memory_of_a_block(), _MOST_FIXED_SHARED), MOST_SHARED)
    lanes = _MOST_LANES
    while lanes > least and (
        lanes // 2 >= most or room(lanes) > limit or lanes * _units(radices) > _MOST_FIXED_THREADS
    ):
        lanes //= 2
    if room(lanes) > limit or lanes * _units(radices) > 1024:
        return None
    return Fixed(length, radices, lanes, signals, room(lanes))


def transforms(function: str, args: np.ndarray, signals: np.ndarray, few_lengths: bool, more: str = "") -> list[Phase]:
    """One launch of `function`<Fft, is shared, power, more>(l, room) for `signals` (n,) real signals per sample, of
    lengths args["nfft"] (n,). `few_lengths`: few different lengths occur, so their radices are compiled in."""
    nfft, power = args["nfft"], int(args["power"][0])
    n, length, most = len(nfft), int(plain(nfft).max(initial=1)), int(plain(signals).max(initial=1))
    if (few_lengths or length & (length - 1) == 0) and (launch := fixed(nfft, signals)):
        return [launch.phase(f"{function}<{launch.type}, true, {power}{more}>(l, 0);")]
    bound = bound_of(nfft)
    lanes = _MOST_LANES
    while lanes > 1 and (lanes // 2 >= most or 8 * _most_room(bound, lanes) > MOST_SHARED):
        lanes //= 2
    groups = -(-signals // lanes)
    if 8 * _most_room(bound, lanes) <= MOST_SHARED:
        body = f"{function}<AnyFft<{lanes}, true>, true, {power}{more}>(l, 0);"
        return [Phase(body, grid_of(several_each(groups), n), (_THREADS, 1, 1), shared=8 * _most_room(bound, lanes))]
    if not (nfft == plain(nfft)).all():  # this check is repeated for later batches
        raise ValueError("[internal error] lengths are not those that memory is made for")
    room = max(_room(int(m), 1) for m in np.unique(plain(nfft)))
    blocks = max(1, min(_MOST_BLOCKS, _MOST_SCRATCH // (8 * room)))
    rows = min(n, blocks)
    grid = (max(1, min(int(plain(groups).max(initial=1)), blocks // rows)), rows, 1)
    body = f"{function}<AnyFft<1, false>, false, {power}{more}>(l, {room});"
    return [Phase(body, grid, (_MORE_THREADS, 1, 1), scratch=8 * room * grid[0] * rows)]


def _radices(n: int) -> list[int] | None:
    """The radices of a transform of n complex numbers, in the order of its steps; None if there are other prime
    factors."""
    odd: list[int] = []
    for radix in _ODD_RADICES:
        while n % radix == 0:
            odd.append(radix)
            n //= radix
    bits = n.bit_length() - 1
    if n != 1 << bits:
        return None
    # As few steps as possible, then as small radices as possible; at least two steps.
    steps = min(max(-(-bits // 4), 2 - len(odd)), bits)
    return [*odd, *(1 << (bits + i) // steps for i in range(steps))]


def _rows(radices: list[int]) -> int:
    """Rows of complex numbers in the memory of a FixedFft."""
    return math.prod(radices) + math.prod(radices[:-1])


def _fixed_room(radices: list[int], lanes: int) -> int:
    """Complex numbers in the memory of a FixedFft, FixedFft::kRoom, an even number."""
    n = math.prod(radices)
    return -(-(_rows(radices) * (lanes + 1) + n + n // 2 + 1) // 2) * 2


def _units(radices: list[int]) -> int:
    """Threads per signal in the last step, FixedFft::kUnits."""
    return (math.prod(radices[:-1]) + 1) // 2


def _room(nfft: int, lanes: int) -> int:
    """Complex numbers in the memory of an AnyFft."""
    n, pitch = nfft if nfft % 2 else nfft // 2, lanes + (lanes > 1)
    convolution = 0 if _radices(n) else 1 << (2 * n - 2).bit_length()
    return n * (pitch + 2) + convolution * (pitch + 3)


def _most_room(bound: int, lanes: int) -> int:
    """The maximum of `_room` for lengths up to a power of two."""
    pitch = lanes + (lanes > 1)
    return bound * (pitch + 2) + 2 * bound * (pitch + 3)
