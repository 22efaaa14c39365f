# SPDX-License-Identifier: Apache-2.0
"""Batches that other libraries hold by DLPack, until they let go of them: in whatever thread and at whatever moment.
That takes no Python, which would wait for its lock (kernels/core/dlpack_export.cpp); who wants memory collects them.

As long as the library's work that was asked for before it let go may use the memory, that is not used again."""

from __future__ import annotations

import atexit
import ctypes
from typing import TYPE_CHECKING, Any

from ..core import kernels
from .driver import driver
from .stream import Event, ForeignStream, give_handle, spare_handle

if TYPE_CHECKING:
    from .batch import DeviceBatch

_MOST = 32  # that are collected at a time
_Found = ctypes.c_int64 * (2 * _MOST)

# A batch and its user's stream, by the handle of the event behind that.
_exported: dict[int, tuple[DeviceBatch, int]] = {}
_export_capsule: Any = None


def _begin() -> None:
    global _export_capsule
    lib = kernels.library()
    atexit.register(lib.stop_releasing)  # frameworks let go of their last tensors when CUDA may have ended
    _export_capsule = lib.export_capsule


def destructor() -> ctypes.c_void_p:
    """That of capsules: calls the deleter of what nobody took."""
    if _export_capsule is None:
        _begin()
    return ctypes.c_void_p(kernels.library().address("drop_capsule"))


def released_list() -> ctypes.c_int64:
    """Its value is not 0 while there is something to collect."""
    return ctypes.c_int64.from_address(kernels.library().released_list())


def capsule(batch: DeviceBatch, n: int, stream: int) -> Any:
    """A DLPack capsule for work of a stream: of the n samples of a batch, one behind the other, or, if n is negative,
    of its only sample. The owners of the batch are blocks of a pool."""
    driver()  # complains after a fork
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
    """What the stream is asked for from now on begins when the batch is there."""
    ready = batch.ready
    if ready is not None and not ready.passed and stream != batch.stream.handle and not ready.done():
        with batch.device:
            ForeignStream(batch.device, stream).wait(ready)


def collect() -> None:
    """Takes back what was let go of."""
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
            else:  # it could not be recorded; whoever takes the block back tries once more and reports it
                give_handle(device, event)
                for block in batch.owners:
                    block.used_on(ForeignStream(device, stream))
            batch = None  # type: ignore[assignment]  # it ends here, and not with the next one
