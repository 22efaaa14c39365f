# SPDX-License-Identifier: Apache-2.0
"""What the GPU itself takes for a batch of a penstock pipeline, as the pipeline's stages measure it: from the first to
the last that one native call has asked the GPU for."""

from __future__ import annotations

import ctypes
import statistics
from typing import Any

NOTE = (
    "The GPU's time is that of penstock's stages by events: where it is much less than the time by the clock, the host "
    "limits. Its speed, bytes of inputs and outputs by that time, is a share of that of a large plain copy: what reads "
    "a part of its input may come to more than 100 %."
)
_MOST_RUNS = 33  # one batch in eight is timed, and two times are needed


def of_a_batch(pipe: Any) -> float:
    """GPU time of a batch in microseconds; 0 if it does no work there."""
    times = pipe._plan.session.times
    before, us = times(), {}
    for _ in range(_MOST_RUNS):
        pipe.run()
        new = {k: (ms - before.get(k, (0, 0))[0], n - before.get(k, (0, 0))[1]) for k, (ms, n) in times().items()}
        us = {k: ms / n * 1e3 for k, (ms, n) in new.items() if n > 1}
        if new and len(us) == len(new):
            break
    return sum(us.values())


def bytes_of_outputs(outputs: Any) -> int:
    specs = [out._batch.spec for out in outputs]
    return sum(int(s.volumes().sum()) * s.dtype.itemsize for s in specs)


def copy_speed(device: Any) -> float:
    """Bytes read and written per microsecond by a plain copy that exceeds all caches."""
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


def peak_speed(device: Any) -> float:
    """Peak bytes per microsecond of the memory, from its clock and bus width; NaN if the driver reports none."""
    khz, bits = device._attribute(36), device._attribute(37)  # CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, ..._BUS_WIDTH
    return 2 * khz * 1e3 * bits / 8 / 1e6 or float("nan")  # two transfers per clock


def synchronize() -> Any:
    """A function that waits for all GPU work of any library in the process."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    return cuda.cuCtxSynchronize
