# SPDX-License-Identifier: Apache-2.0
"""What the GPU itself takes for a batch of a penstock pipeline: its streams are held back until the host has asked for
everything, so that the time between the first and the last of it is none of the host's."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable
from typing import Any

NOTE = (
    "The GPU's time is that of penstock's launches and copies, the host having asked for all of them before: where it "
    "is much less than the time by the clock, the host limits. Its speed, bytes of inputs and outputs by that time, "
    "is a share of that of a large plain copy: what reads a part of its input may come to more than 100 %."
)
# Whoever waits for the GPU meanwhile goes on after 0.3 s.
_HOLD = """extern "C" __global__ void hold(const volatile unsigned *word) {
  for (int i = 0; i < 30000 && !*word; i++) __nanosleep(10000);
}
"""
_ROUNDS = 3


class Gate:
    """Holds back a stream by a kernel that goes round until a word of memory is set."""

    def __init__(self, device: Any):
        from penstock.gpu import compile

        self._word = ctypes.c_uint32.from_address(device.allocate_pinned(4096))
        module = device.load(compile.compile(_HOLD, "hold", device.architecture))
        self._function = device.function(module, "hold")

    def close(self, stream: Any) -> None:
        self._word.value = 0
        argument = ctypes.c_uint64(ctypes.addressof(self._word))
        stream.launch(self._function, (1, 1, 1), (1, 1, 1), 0, argument)

    def open(self) -> None:
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
