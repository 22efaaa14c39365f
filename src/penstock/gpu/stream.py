# SPDX-License-Identifier: Apache-2.0
"""CUDA streams and events."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from collections import deque
from typing import Any

from ..core.idle_pool import IdlePool
from .driver import NOT_READY, Device, check, driver, forked, library

_MOST_MARKS = 64
_MOST_IDLE = 256
_NO_TIMING, _SLEEPS, _NON_BLOCKING = 2, 1, 1
_P = ctypes.c_void_p
_numbers = itertools.count()


# Handles of unused events, by device and kind, for reuse.
_idle: IdlePool[tuple[int, int], int] = IdlePool(_MOST_IDLE)


class Event:
    """A CUDA event. Must be recorded before any other use."""

    __slots__ = ("_kind", "device", "handle", "passed")

    def __init__(self, device: Device, timed: bool = False, sleeps: bool = False):
        """`sleeps`: waiting threads sleep instead of spinning."""
        self.device = device
        self.passed = False  # known to have completed since it was last recorded
        self._kind = device.id, (0 if timed else _NO_TIMING) | (_SLEEPS if sleeps else 0)
        lib = driver()
        self.handle = _idle.take(self._kind)
        if self.handle is None:
            handle = _P()
            check(lib.cuEventCreate(ctypes.byref(handle), self._kind[1]), "making an event")
            self.handle = handle.value

    @classmethod
    def recorded(cls, device: Device, handle: int) -> Event:
        """An event with a handle of `spare_handle` that was recorded since."""
        event = cls.__new__(cls)
        event.device, event.handle, event.passed, event._kind = device, handle, False, (device.id, _NO_TIMING)
        return event

    def done(self) -> bool:
        if self.passed:
            return True
        code = driver().cuEventQuery(self.handle)
        if code == NOT_READY:
            return False
        check(code, "asking whether the GPU is through")
        self.passed = True
        return True

    def wait(self) -> None:
        """Blocks this thread until the event has completed; releases the GIL."""
        check(driver().cuEventSynchronize(self.handle), "waiting for the GPU")
        self.passed = True

    def since(self, earlier: Event) -> float:
        """Milliseconds between two timed events."""
        ms = ctypes.c_float()
        check(driver().cuEventElapsedTime(ctypes.byref(ms), earlier.handle, self.handle), "reading a GPU's clock")
        return ms.value

    def __del__(self, library=library, idle=_idle, finalizing=sys.is_finalizing) -> None:
        handle = getattr(self, "handle", None)
        if handle and not finalizing() and not forked() and not idle.give(self._kind, handle):
            library().cuEventDestroy_v2(handle)


def spare_handle(device: Device) -> int:
    """An event handle, to be recorded by native code."""
    handle = _idle.take((device.id, _NO_TIMING))
    if handle is None:
        with device:
            event = Event(device)
        handle, event.handle = event.handle, None
    assert handle is not None
    return handle


def give_handle(device: Device, handle: int) -> None:
    """Takes back the handle of an unused event."""
    if not _idle.give((device.id, _NO_TIMING), handle):
        Event.recorded(device, handle)  # destroyed at once


class Stream:
    """A CUDA stream. Created inside `with device:`, with the lowest priority, so that kernels of a training on a stream
    with a higher priority run first.

    `work` counts submitted operations, so that dependencies are numbers and can share events; `through` is the
    number of them known to be done. `work` is incremented after the driver call: an event that another thread
    records in between may be after more operations than counted, never fewer."""

    __slots__ = ("__weakref__", "_behind", "_lock", "_marks", "closed", "device", "handle", "number", "through", "work")

    def __init__(self, device: Device):
        self.device = device
        handle, lowest = _P(), ctypes.c_int()
        lib = driver()
        check(lib.cuCtxGetStreamPriorityRange(ctypes.byref(lowest), None), "asking for the priorities of streams")
        made = lib.cuStreamCreateWithPriority(ctypes.byref(handle), _NON_BLOCKING, lowest)
        check(made, "making a stream")
        self.handle, self.closed = handle.value, False
        self.work = self.through = 0
        self._marks: deque[tuple[int, Event]] = deque()
        self._lock = threading.Lock()
        self.number = next(_numbers)
        self._behind: dict[int, int] = {}  # by number of another stream: how much of its work this stream waits for

    def mark(self, sleeps: bool = False) -> Event:
        """An event after all work submitted so far. `sleeps`: waiting threads should sleep."""
        with self._lock:
            return self._mark(sleeps)

    def _mark(self, sleeps: bool = False) -> Event:
        marks = self._marks
        if marks and marks[-1][0] == self.work:
            return marks[-1][1]
        work, event = self.work, self.record(Event(self.device, sleeps=True) if sleeps else None)
        marks.append((work, event))
        if len(marks) > _MOST_MARKS:
            marks.popleft()
        return event

    def behind(self, work: int) -> tuple[int, Event]:
        """The earliest mark after the first `work` units: its amount of work, and its event. Work submitted later is
        not waited for."""
        with self._lock:
            for mark in self._marks:
                if mark[0] >= work:
                    return mark
            self._mark()
            return self._marks[-1]

    def is_through(self, work: int) -> bool:
        """Whether the first `work` units are done. If not, makes sure that an event marks them."""
        if work <= self.through or self.closed:
            return True
        with self._lock:
            marks = self._marks
            while marks and marks[0][1].done():
                self.reached(marks[0][0])
                if len(marks) == 1 and marks[0][0] == self.work:
                    break  # keep it for later waits
                marks.popleft()
            if work <= self.through:
                return True
            if not marks or marks[-1][0] < work:
                self._mark()
        return False

    def reached(self, work: int) -> None:
        """Records that the first `work` units are done."""
        if work > self.through:
            self.through = work

    def record(self, event: Event | None = None) -> Event:
        event = event or Event(self.device)
        event.passed = False
        check(driver().cuEventRecord(event.handle, self.handle), "recording an event")
        return event

    def wait(self, event: Event) -> None:
        """Makes later work of this stream wait for the event."""
        check(driver().cuStreamWaitEvent(self.handle, event.handle, 0), "making a stream wait")
        self.work += 1  # work that waits for this stream also waits for the event

    def wait_for(self, other: Stream, work: int) -> None:
        """Makes later work of this stream wait for the first `work` units of another stream."""
        if self._behind.get(other.number, -1) >= work:
            return
        through, event = other.behind(work)
        self.wait(event)
        self._behind[other.number] = through

    def asked(self) -> None:
        """Records that work was submitted to this stream elsewhere, or that it waits for something."""
        self.work += 1

    def synchronize(self) -> None:
        check(driver().cuStreamSynchronize(self.handle), "waiting for the GPU")

    def upload(self, to: int, address: int, nbytes: int) -> None:
        if nbytes:
            check(driver().cuMemcpyHtoDAsync_v2(to, address, nbytes, self.handle), f"copying {nbytes} bytes to the GPU")
            self.work += 1

    def download(self, to: int, address: int, nbytes: int) -> None:
        if nbytes:
            check(
                driver().cuMemcpyDtoHAsync_v2(to, address, nbytes, self.handle), f"copying {nbytes} bytes from the GPU"
            )
            self.work += 1

    def copy(self, to: int, address: int, nbytes: int) -> None:
        if nbytes:
            check(driver().cuMemcpyDtoDAsync_v2(to, address, nbytes, self.handle), f"copying {nbytes} bytes on the GPU")
            self.work += 1

    def fill(self, address: int, value: int, nbytes: int) -> None:
        if nbytes:
            check(driver().cuMemsetD8Async(address, value, nbytes, self.handle), f"filling {nbytes} bytes of the GPU")
            self.work += 1

    def launch(self, function: int, grid: tuple, block: tuple, shared: int, argument: Any) -> None:
        """Launches a kernel whose only argument is the ctypes structure `argument`, passed by value."""
        parameters = (_P * 1)(ctypes.addressof(argument))
        check(
            driver().cuLaunchKernel(function, *grid, *block, shared, self.handle, parameters, None),
            f"launching a kernel of {grid} blocks of {block} threads",
        )
        self.work += 1

    def __del__(self, library=library, finalizing=sys.is_finalizing) -> None:
        if getattr(self, "handle", None) and not finalizing() and not forked():
            # In a garbage cycle, memory blocks that its work uses may be freed after the stream: finish all work first.
            with self.device:
                library().cuStreamSynchronize(self.handle)
            self.closed = True
            library().cuStreamDestroy_v2(self.handle)


class ForeignStream(Stream):
    """A stream of another library, by handle; 0 is the default stream."""

    __slots__ = ()

    def __init__(self, device: Device, handle: int):
        self.device, self.handle, self.closed = device, handle, False
        self.work = self.through = 0
        self.number, self._behind = next(_numbers), {}

    def __del__(self, library=library, finalizing=sys.is_finalizing) -> None:
        """Not destroyed, as it belongs to another library."""

    def mark(self, sleeps: bool = False) -> Event:
        """Records a new event, as work submitted by others is not counted."""
        return self.record()
