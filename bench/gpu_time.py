# SPDX-License-Identifier: Apache-2.0
"""What the GPU itself takes for a batch of a penstock pipeline: its streams are held back until the host has asked for
everything, so that the time between the first and the last of it is none of the host's."""

from __future__ import annotations

import ctypes
import statistics
import threading
from collections.abc import Callable
from typing import Any

NOTE = (
    "The GPU's time is that of penstock's launches and copies, the host having asked for all of them before: where it "
    "is much less than the time by the clock, the host limits. Its speed, bytes of inputs and outputs by that time, "
    "is a share of that of a large plain copy: what reads a part of its input may come to more than 100 %."
)
_HELD_AT_MOST = 0.3  # seconds; whoever waits for the GPU meanwhile goes on then
_ROUNDS = 3


class Gate:
    """Holds back streams, all up to the same moment."""

    def __init__(self, device: Any):
        from penstock.gpu.stream import Stream

        self._stream, self._open = Stream(device), threading.Event()
        self._launch = ctypes.CDLL("libcuda.so.1").cuLaunchHostFunc
        self._wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: (self._open.wait(_HELD_AT_MOST), None)[1])

    def close(self, streams: list[Any]) -> None:
        self._open.clear()
        self._launch(ctypes.c_void_p(self._stream.handle), self._wait, None)
        event = self._stream.record()
        for stream in streams:
            stream.wait(event)

    def open(self) -> None:
        self._open.set()


def of_a_batch(pipe: Any, settle: Callable[[], None]) -> float:
    """Microseconds from the first to the last that the GPU does for a batch: launches and copies. `settle` waits until
    the host has nothing to do."""
    from penstock.gpu.stream import Event

    session = pipe._plan.session
    device, streams, times = session.device, list(session._streams), []
    with device:
        gate = Gate(device)
        for _ in range(_ROUNDS):
            for stream in streams:
                stream.synchronize()
            gate.close(streams)
            begin, end = ([Event(device, timed=True) for _ in streams] for _ in range(2))
            for stream, event in zip(streams, begin):
                stream.record(event)
            pipe.run()  # of what was made ahead; so another batch is made
            settle()
            for stream, event in zip(streams, end):
                stream.record(event)
            gate.open()
            for event in end:
                event.wait()
            times.append(max(b.since(a) for a, b in zip(begin, end)) * 1e3)
    return statistics.median(times)


def bytes_of_outputs(outputs: Any) -> int:
    specs = [out._batch.spec for out in outputs]
    return sum(int(s.volumes().sum()) * s.dtype.itemsize for s in specs)


def copy_speed(device: Any) -> float:
    """Bytes read and written in a microsecond by a plain copy that no cache holds."""
    from penstock.gpu.stream import Event, Stream

    nbytes, times = 512 << 20, []
    with device:
        stream, block = Stream(device), device.allocate(2 * nbytes)
        for _ in range(5):
            begin, end = Event(device, timed=True), Event(device, timed=True)
            stream.record(begin)
            stream.copy(block + nbytes, block, nbytes)
            stream.record(end)
            end.wait()
            times.append(end.since(begin) * 1e3)
        device.free(block)
    return 2 * nbytes / statistics.median(times)
