# SPDX-License-Identifier: Apache-2.0
"""What is behind a stream's marks: all that it was asked for, also by others, and all that it waits for."""

from penstock.gpu.driver import Device
from penstock.gpu.memory import pool
from penstock.gpu.stream import Stream


def test_marks_are_behind_what_the_stream_waits_for():
    device = Device.get(0)
    with device:
        stream, other = Stream(device), Stream(device)
        memory = pool(device).take(64, stream)
        stream.fill(memory.address, 1, 64)
        early = stream.mark()
        assert stream.mark() is early  # nothing was asked for in between
        stream.wait(other.record())
        late = stream.mark()
        assert late is not early
        stream.asked()
        assert stream.mark() is not late
        stream.synchronize()
        assert stream.is_through(stream.work)


def test_work_of_others_is_told():
    device = Device.get(0)
    with device:
        stream = Stream(device)
        stream.synchronize()
        before = stream.work
        stream.asked()
        assert stream.work > before
