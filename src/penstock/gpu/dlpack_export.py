# SPDX-License-Identifier: Apache-2.0
"""Batches exported by DLPack, until the consumers release them, in any thread at any time. The deleter runs no Python
code, which would wait for the GIL (kernels/core/dlpack_export.cpp); released batches are collected when memory is
allocated.

Memory is not reused before the consumer's earlier work on it is done."""

from __future__ import annotations

import atexit
import ctypes
from typing import TYPE_CHECKING, Any

from ..core import kernels
from .driver import driver
from .stream import Event, ForeignStream, give_handle, spare_handle

if TYPE_CHECKING:
    from .batch import DeviceBatch

_MOST = 32  # collected at a time
_Found = ctypes.c_int64 * (2 * _MOST)

# The batch and its consumer's stream, by the handle of the event recorded on release.
_exported: dict[int, tuple[DeviceBatch, int]] = {}
_export_capsule: Any = None


def _begin() -> None:
    global _export_capsule
    lib = kernels.library()
    atexit.register(lib.stop_releasing)  # frameworks may release their last tensors after CUDA has ended
    _export_capsule = lib.export_capsule


def destructor() -> ctypes.c_void_p:
    """The destructor of capsules: calls the deleter if the tensor was not taken."""
    if _export_capsule is None:
        _begin()
    return ctypes.c_void_p(kernels.library().address("drop_capsule"))


def released_list() -> ctypes.c_int64:
    """A native value that is nonzero while there are released batches to collect."""
    return ctypes.c_int64.from_address(kernels.library().released_list())


def capsule(batch: DeviceBatch, n: int, stream: int) -> Any:
    """A DLPack capsule for use on a stream: of the n contiguous samples of a batch or, if n is negative, of its only
    sample. The batch's owners must be blocks of a pool."""
    driver()  # raises after a fork
    if _export_capsule is None:
        _begin()
    device = batch.device
    event = spare_handle(device)
    _exported[event] = batch, stream
    try:
        return _export_capsule(batch.rows_address, n, device.id, stream, event, device._context)
    except BaseException:
        del _exported[event]
        give_handle(device, event)
        raise


def wait_until_ready(batch: DeviceBatch, stream: int) -> None:
    """Makes later work of the stream wait until the batch is ready."""
    ready = batch.ready
    if ready is not None and not ready.passed and stream != batch.stream.handle and not ready.done():
        with batch.device:
            ForeignStream(batch.device, stream).wait(ready)


def collect() -> None:
    """Takes back released batches."""
    n = _MOST
    while n == _MOST:
        found = _Found()
        n = kernels.library().take_released(found, _MOST)
        known = iter(found[: 2 * n])
        for event, state in zip(known, known):
            batch, stream = _exported.pop(event)
            device = batch.device
            if state == 1:
                give_handle(device, event)
            elif state == 0:
                use = Event.recorded(device, event)
                for block in batch.owners:
                    block.used_until(stream, use)
            else:  # recording failed; the next user of the block tries again and reports it
                give_handle(device, event)
                for block in batch.owners:
                    block.used_on(ForeignStream(device, stream))
            batch = None  # type: ignore[assignment]  # it ends here, and not with the next one
