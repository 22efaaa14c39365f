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
_EQUAL = 1  # CU_STREAM_WAIT_VALUE_EQ


class Gate:
    """Holds back a stream, which waits for a word of memory."""

    def __init__(self, device: Any):
        from penstock.gpu.driver import check

        self._check = check
        self._word = ctypes.c_uint32.from_address(device.allocate_pinned(4096))
        self._wait = ctypes.CDLL("libcuda.so.1").cuStreamWaitValue32_v2
        self._wait.argtypes = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint

    def close(self, stream: Any) -> None:
        self._word.value = 0
        self._check(self._wait(stream.handle, ctypes.addressof(self._word), 1, _EQUAL), "holding back a stream")
        self._timer = threading.Timer(_HELD_AT_MOST, self.open)
        self._timer.start()

    def open(self) -> None:
        self._timer.cancel()
        self._word.value = 1


def of_a_batch(pipe: Any, settle: Callable[[], None]) -> float:
    """Microseconds from the first to the last that the GPU does for a batch: launches and copies. `settle` waits until
    the host has nothing to do."""
    from penstock.gpu.stream import Event

    session = pipe._plan.session
    device, times = session.device, []
    with device:
        gate = Gate(device)
        for _ in range(_ROUNDS):
            for stream in list(session._streams):
                stream.synchronize()
            stream = session._streams[0]  # that of the batch to come; held alone: several would not go on at once
            begin, end = (Event(device, timed=True) for _ in range(2))
            gate.close(stream)
            stream.record(begin)
            pipe.run()  # of what was made ahead; so another batch is made
            settle()
            stream.record(end)
            gate.open()
            end.wait()
            times.append(end.since(begin) * 1e3)
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
