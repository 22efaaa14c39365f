# SPDX-License-Identifier: Apache-2.0
"""How Fourier transforms are spread over blocks of threads; see kernels/audio/gpu_fft.h."""

from __future__ import annotations

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


def transforms(function: str, nfft: np.ndarray, signals: np.ndarray, few_lengths: bool) -> list[Phase]:
    """One launch of `function`<Fft, is shared>(l, room) for `signals` (n,) real signals per sample of lengths `nfft`
    (n,). `few_lengths`: so few come up that their radices are worth compiling in."""
    n, length = len(nfft), int(plain(nfft).max(initial=1))
    most = int(plain(signals).max(initial=1))
    radices = _radices(length // 2) if length % 2 == 0 else None
    is_power = length & (length - 1) == 0
    if radices and len(radices) > 1 and (few_lengths or is_power) and bool((nfft == length).all()):
        lanes = _lanes(_MOST_FIXED_LANES, most, lambda k: _fixed_room(radices, k))
        room = 8 * _fixed_room(radices, lanes)
        if room <= MOST_SHARED:
            body = f"{function}<FixedFft<{', '.join(map(str, (lanes, *radices)))}>, true>(l, 0);"
            grid = grid_of(several_each(-(-signals // lanes)), n)
            return [Phase(body, grid, (_FIXED_THREADS, 1, 1), shared=room, resident=_FIXED_RESIDENT)]
    bound = bound_of(nfft)
    lanes = _lanes(_MOST_LANES, most, lambda k: _most_room(bound, k))
    groups = -(-signals // lanes)
    if 8 * _most_room(bound, lanes) <= MOST_SHARED:
        body = f"{function}<AnyFft<{lanes}, true>, true>(l, 0);"
        return [Phase(body, grid_of(several_each(groups), n), (_THREADS, 1, 1), shared=8 * _most_room(bound, lanes))]
    if not (nfft == plain(nfft)).all():  # which is checked for later batches
        raise ValueError("[internal error] lengths are not those that memory is made for")
    room = max(_room(int(m), 1) for m in np.unique(plain(nfft)))
    blocks = max(1, min(_MOST_BLOCKS, _MOST_SCRATCH // (8 * room)))
    rows = min(n, blocks)
    grid = (max(1, min(int(plain(groups).max(initial=1)), blocks // rows)), rows, 1)
    body = f"{function}<AnyFft<1, false>, false>(l, {room});"
    return [Phase(body, grid, (_MORE_THREADS, 1, 1), scratch=8 * room * grid[0] * rows)]


def _lanes(most: int, signals: int, room) -> int:
    """How many signals a block takes at a time."""
    lanes = most
    while lanes > 1 and (lanes // 2 >= signals or 8 * room(lanes) > MOST_SHARED):
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
    n = int(np.prod(radices))
    return (n + n // radices[-1]) * (lanes + 1) + n + n // 2 + 1


def _room(nfft: int, lanes: int) -> int:
    """Complex numbers in the memory of an AnyFft."""
    n, pitch = nfft if nfft % 2 else nfft // 2, lanes + (lanes > 1)
    convolution = 0 if _radices(n) else 1 << (2 * n - 2).bit_length()
    return n * (pitch + 2) + convolution * (pitch + 3)


def _most_room(bound: int, lanes: int) -> int:
    """The same for any length up to a power of two."""
    pitch = lanes + (lanes > 1)
    return bound * (pitch + 2) + 2 * bound * (pitch + 3)
