# SPDX-License-Identifier: Apache-2.0
"""How Fourier transforms are spread over blocks of threads; see kernels/audio/gpu_fft.h."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...core.traced import plain
from ..launch import Phase, grid_of, several_each
from .bounds import bound_of
from .tiles import MOST_SHARED

_ODD_RADICES = (3, 5, 7, 11, 13)
_THREADS, _MORE_THREADS = 256, 512  # of a block; of those that work in scratch memory
_FIXED_THREADS, _FIXED_RESIDENT = 128, 4
_MOST_LANES, _MOST_FIXED_LANES = 32, 16
_MOST_BLOCKS, _MOST_SCRATCH = 1056, 1 << 28  # of those with scratch memory, and their bytes


class Fixed(NamedTuple):
    """Transforms of a length that is compiled in."""

    fft: str  # its type
    lanes: int  # signals of a block at a time
    numbers: int  # bytes for their complex numbers alone
    room: int  # bytes of shared memory, a multiple of 16
    grid: tuple[int, int, int]

    def phase(self, body: str) -> Phase:
        return Phase(body, self.grid, (_FIXED_THREADS, 1, 1), shared=self.room, resident=_FIXED_RESIDENT)


def fixed(nfft: np.ndarray, signals: np.ndarray, least: int = 1, more: int = 0) -> Fixed | None:
    """Those for `signals` (n,) real signals per sample of lengths `nfft` (n,), `least` of them at a time at least, with
    `more` bytes for each; None if lengths differ or aren't suited."""
    length, most = int(plain(nfft).max(initial=1)), int(plain(signals).max(initial=1))
    radices = _radices(length // 2) if length % 2 == 0 else None
    if not radices or len(radices) < 2 or not (nfft == length).all():
        return None
    lanes = max(_lanes(_MOST_FIXED_LANES, most, lambda k: 8 * _fixed_room(radices, k) + more * k), least)
    room = -(-8 * _fixed_room(radices, lanes) // 16) * 16 + more * lanes
    if room > MOST_SHARED:
        return None
    grid = grid_of(several_each(-(-signals // lanes)), len(nfft))
    numbers = 8 * _rows(radices) * (lanes + 1)
    return Fixed(f"FixedFft<{', '.join(map(str, (lanes, *radices)))}>", lanes, numbers, room, grid)


def transforms(function: str, args: np.ndarray, signals: np.ndarray, few_lengths: bool) -> list[Phase]:
    """One launch of `function`<Fft, is shared, power>(l, room) for `signals` (n,) real signals per sample of lengths
    args["nfft"] (n,). `few_lengths`: so few come up that their radices are worth compiling in."""
    nfft, power = args["nfft"], int(args["power"][0])
    n, length, most = len(nfft), int(plain(nfft).max(initial=1)), int(plain(signals).max(initial=1))
    if (few_lengths or length & (length - 1) == 0) and (launch := fixed(nfft, signals)):
        return [launch.phase(f"{function}<{launch.fft}, true, {power}>(l, 0);")]
    bound = bound_of(nfft)
    lanes = _lanes(_MOST_LANES, most, lambda k: 8 * _most_room(bound, k))
    groups = -(-signals // lanes)
    if 8 * _most_room(bound, lanes) <= MOST_SHARED:
        body = f"{function}<AnyFft<{lanes}, true>, true, {power}>(l, 0);"
        return [Phase(body, grid_of(several_each(groups), n), (_THREADS, 1, 1), shared=8 * _most_room(bound, lanes))]
    if not (nfft == plain(nfft)).all():  # which is checked for later batches
        raise ValueError("[internal error] lengths are not those that memory is made for")
    room = max(_room(int(m), 1) for m in np.unique(plain(nfft)))
    blocks = max(1, min(_MOST_BLOCKS, _MOST_SCRATCH // (8 * room)))
    rows = min(n, blocks)
    grid = (max(1, min(int(plain(groups).max(initial=1)), blocks // rows)), rows, 1)
    body = f"{function}<AnyFft<1, false>, false, {power}>(l, {room});"
    return [Phase(body, grid, (_MORE_THREADS, 1, 1), scratch=8 * room * grid[0] * rows)]


def _lanes(most: int, signals: int, room: Callable[[int], int]) -> int:
    """How many signals a block takes at a time, `room` bytes of shared memory."""
    lanes = most
    while lanes > 1 and (lanes // 2 >= signals or room(lanes) > MOST_SHARED):
        lanes //= 2
    return lanes


def _radices(n: int) -> list[int] | None:
    """Those of a transform of n complex numbers, in the order of its steps; None if there are other prime factors."""
    odd = []
    for radix in _ODD_RADICES:
        while n % radix == 0:
            odd.append(radix)
            n //= radix
    bits = n.bit_length() - 1
    if n != 1 << bits:
        return None
    # As few steps as possible with as few elements each as possible, and two at least.
    steps = min(max(-(-bits // 4), 2 - len(odd)), bits)
    return [*odd, *(1 << (bits + i) // steps for i in range(steps))]


def _fixed_room(radices: list[int], lanes: int) -> int:
    """Complex numbers in the memory of a FixedFft."""
    n = math.prod(radices)
    return _rows(radices) * (lanes + 1) + n + n // 2 + 1


def _rows(radices: list[int]) -> int:
    return math.prod(radices) + math.prod(radices[:-1])


def _room(nfft: int, lanes: int) -> int:
    """Complex numbers in the memory of an AnyFft."""
    n, pitch = nfft if nfft % 2 else nfft // 2, lanes + (lanes > 1)
    convolution = 0 if _radices(n) else 1 << (2 * n - 2).bit_length()
    return n * (pitch + 2) + convolution * (pitch + 3)


def _most_room(bound: int, lanes: int) -> int:
    """The same for any length up to a power of two."""
    pitch = lanes + (lanes > 1)
    return bound * (pitch + 2) + 2 * bound * (pitch + 3)
