# SPDX-License-Identifier: Apache-2.0
"""Random numbers as a function of (seed, operator, epoch, position of the sample): no state, any order, any number of
threads.

Philox4x32-10: Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations

import numpy as np

from .kernels import library
from .rows import reserve

_UINT32, _UINT64, _INT64 = np.dtype("u4"), np.dtype("u8"), np.dtype("i8")


def key(seed: int, operator: int | None) -> int:
    """64-bit key of an operator's random numbers. Operators with the same explicit seed (operator None) draw the same
    numbers."""
    x = (seed * 0x9E3779B97F4A7C15 + (0 if operator is None else (operator + 1) * 0xD1B54A32D192ED03)) & (2**64 - 1)
    # The finaliser of SplitMix64 spreads neighbouring seeds over all bits.
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & (2**64 - 1)
    return x ^ (x >> 31)


class Random:
    """The random numbers of one operator for the samples of a batch.

    `epoch` and `position` are columns (n,). Every method is pure: the same call gives the same numbers; `stream`
    gives independent ones.
    """

    __slots__ = ("epoch", "key", "position")

    def __init__(self, key: int, epoch: np.ndarray, position: np.ndarray):
        self.key, self.epoch, self.position = key, epoch, position

    def columns(self) -> tuple[int, bytes, bytes]:
        """Key, epochs and positions, as native functions take them."""
        epoch, position = self.epoch, self.position
        if epoch.dtype is not _UINT32:
            epoch = epoch.astype(_UINT32)
        if position.dtype is not _INT64:  # the bytes are the same
            position = position.astype(_UINT64, copy=False)
        return self.key, epoch.tobytes(), position.tobytes()

    def bits(self, k: int, stream: int = 0, first: int = 0) -> np.ndarray:
        """Uniform 32-bit words (n, k), starting at word `first` of each sample's sequence."""
        out, at = reserve((len(self.position), k), _UINT32)
        library().philox(*self.columns(), len(out), stream, first, k, at)
        return out

    def uniform(self, k: int, stream: int = 0, first: int = 0) -> np.ndarray:
        """Uniform float64 (n, k) in [0, 1), with 53 random bits each."""
        b = self.bits(2 * k, stream, 2 * first).astype("u8").reshape(-1, k, 2)
        return ((b[..., 0] << np.uint64(21)) ^ (b[..., 1] >> np.uint64(11))) * 2.0**-53

    def normal(self, k: int, stream: int = 0, first: int = 0) -> np.ndarray:
        """Float64 (n, k) of the standard normal distribution (Box, Muller 1958)."""
        u = self.uniform(2 * k, stream, 2 * first).reshape(-1, k, 2)
        return np.sqrt(-2 * np.log1p(-u[..., 0])) * np.cos(2 * np.pi * u[..., 1])

    def fields(self) -> dict[str, object]:
        """The fields key, position and epoch for a kernel that draws its own random numbers."""
        position, epoch = self.position.astype("u8", copy=False), self.epoch.astype("u4", copy=False)
        return {"key": np.uint64(self.key), "position": position, "epoch": epoch}
