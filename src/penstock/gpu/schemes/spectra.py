# SPDX-License-Identifier: Apache-2.0
"""How Fourier transforms are spread over blocks of threads; see kernels/audio/gpu_fft.h."""

from __future__ import annotations

import numpy as np

from ...core.traced import plain
from ..launch import Phase, grid_of, several_each
from .bounds import bound_of
from .tiles import MOST_SHARED

_RADICES = (16, 8, 4, 2, 3, 5, 7, 11, 13)
_THREADS, _MORE_THREADS = 256, 512  # of a block; of those that work in scratch memory
_MOST_LANES = 32
_MOST_BLOCKS, _MOST_SCRATCH = 1056, 1 << 28  # of those with scratch memory, and their bytes


def transforms(function: str, nfft: np.ndarray, signals: np.ndarray, few_lengths: bool) -> list[Phase]:
    """One launch of `function`<Fft, lanes, is shared>(l, room) for `signals` (n,) real signals per sample of lengths
    `nfft` (n,). `few_lengths`: so few come up that their radices are worth compiling in."""
    n, length = len(nfft), int(plain(nfft).max(initial=1))
    radices = _radices(_complex(length))
    is_power = length & (length - 1) == 0
    is_fixed = radices is not None and (few_lengths or is_power) and bool((nfft == length).all())
    fft, most = "AnyFft", int(plain(signals).max(initial=1))
    lanes, bound = _MOST_LANES, bound_of(nfft)
    if is_fixed:
        fft = f"FixedFft<{', '.join(map(str, radices or ()))}>"
        rooms = {k: _room(length, k) for k in _lanes()}
    else:
        rooms = {k: _most_room(bound, k) for k in _lanes()}
    while lanes > 1 and (lanes // 2 >= most or 8 * rooms[lanes] > MOST_SHARED):
        lanes //= 2
    groups = -(-signals // lanes)
    if 8 * rooms[lanes] <= MOST_SHARED:
        grid = grid_of(several_each(groups), n)
        return [Phase(f"{function}<{fft}, {lanes}, true>(l, 0);", grid, (_THREADS, 1, 1), shared=8 * rooms[lanes])]
    if not is_fixed and not (nfft == plain(nfft)).all():  # which is checked for later batches
        raise ValueError("[internal error] lengths are not those that memory is made for")
    room = max(_room(int(m), 1) for m in np.unique(plain(nfft)))
    blocks = max(1, min(_MOST_BLOCKS, _MOST_SCRATCH // (8 * room)))
    rows = min(n, blocks)
    grid = (max(1, min(int(plain(groups).max(initial=1)), blocks // rows)), rows, 1)
    body = f"{function}<{fft}, 1, false>(l, {room});"
    return [Phase(body, grid, (_MORE_THREADS, 1, 1), scratch=8 * room * grid[0] * rows)]


def _lanes() -> list[int]:
    return [1 << k for k in range(_MOST_LANES.bit_length())]


def _complex(nfft: int) -> int:
    """The length of the transform of complex numbers that one of real numbers takes."""
    return nfft if nfft % 2 else nfft // 2


def _radices(n: int) -> list[int] | None:
    """None if there are other prime factors."""
    found = []
    for radix in _RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


def _room(nfft: int, lanes: int) -> int:
    """Complex numbers that a block of threads holds."""
    n, pitch = _complex(nfft), lanes + (lanes > 1)
    convolution = 0 if _radices(n) else 1 << (2 * n - 2).bit_length()
    return n * (pitch + 2) + convolution * (pitch + 3)


def _most_room(bound: int, lanes: int) -> int:
    """The same for any length up to a power of two."""
    pitch = lanes + (lanes > 1)
    return bound * (pitch + 2) + 2 * bound * (pitch + 3)
