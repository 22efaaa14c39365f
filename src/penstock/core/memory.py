# SPDX-License-Identifier: Apache-2.0
"""Memory of samples: blocks of the pool, views of them, and shared ownership."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import kernels

if TYPE_CHECKING:
    from typing_extensions import Self


class Buffer:
    """64-byte aligned memory from the pool; returned to it when no longer referenced."""

    __slots__ = ("__weakref__", "_owned", "address", "nbytes")

    def __init__(self, nbytes: int):
        self.nbytes = nbytes
        self.address = kernels.take_memory(max(nbytes, 1))
        self._owned = kernels.own_memory(self.address)

    @classmethod
    def at(cls, address: int, nbytes: int) -> Self:
        """Takes ownership of memory that was taken from the pool."""
        buffer = cls.__new__(cls)
        buffer.nbytes, buffer.address = nbytes, address
        buffer._owned = kernels.own_memory(address)
        return buffer


class _View:
    """Exposes memory to NumPy and keeps its owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype, owner: object, read_only: bool):
        self.owner = owner
        self.__array_interface__ = {"data": (address, read_only), "shape": shape, "typestr": dtype.str, "version": 3}


def view(address: int, shape: tuple[int, ...], dtype: np.dtype, owner: object, read_only: bool = False) -> np.ndarray:
    """A NumPy array of memory at `address` that keeps `owner` alive."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(_View(int(address), shape, dtype, owner, read_only))


class Borrowed:
    """An owner that keeps using its memory. If a receiver may write to such a batch, it gets a copy."""

    __slots__ = ("owner",)

    def __init__(self, owner: object):
        self.owner = owner


class Kept(Borrowed):
    """An owner whose memory nobody else may write to, such as the user's own arrays. Such batches are returned as
    read-only arrays without a copy, and are copied for receivers that get a writable address."""

    __slots__ = ()
