# SPDX-License-Identifier: Apache-2.0
"""Memory of others that is registered as pinned memory, so that the GPU copies from it without a copy by the CPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from .driver import CudaError, Device, forked
from .stream import Stream
from .uses import Use, UsedMemory


class Registered(UsedMemory):
    """Registered memory. Its owner calls `given_back` when no batch is in it any more, and may write to it again once
    `done` is true."""

    __slots__ = ("_device", "_uses", "address", "nbytes")

    def __init__(self, device: Device, address: int, nbytes: int):
        self._device, self.address, self.nbytes = device, address, nbytes
        self._streams: list[Stream] = []
        self._uses: tuple[Use, ...] = ()
        with device:
            device.register(address, nbytes)

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether all of these bytes are in it."""
        return self.address <= address and address + nbytes <= self.address + self.nbytes

    def given_back(self) -> None:
        """Records that only work submitted so far uses it. Takes no lock."""
        self._uses, self._streams = self.uses(), []

    def done(self) -> bool:
        """Whether the work that uses it is done."""
        if all(use.is_known_to_be_done() for use in self._uses):
            return True
        try:
            with self._device:
                return all([use.done() for use in self._uses])
        except CudaError:  # the GPU is lost, and reads nothing any more
            return True

    def unregister(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Waits for the work that uses it, and unregisters it. Takes no lock. Does nothing in a forked child."""
        if finalizing() or forked():
            return
        with contextlib.suppress(CudaError), self._device:  # the GPU is lost, and its memory with it
            for use in self._uses:
                use.block()
            self._device.unregister(self.address)


def register(device: Device, address: int, nbytes: int) -> Registered | None:
    """Registers memory; None if the driver refuses, because of a limit on locked memory, for example."""
    try:
        return Registered(device, address, nbytes)
    except CudaError:
        return None
