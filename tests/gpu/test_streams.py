# SPDX-License-Identifier: Apache-2.0
"""A stream's marks include all work enqueued before, also by others, and everything it waits for."""

import ctypes

import numpy as np

from penstock import fn, pipeline_def
from penstock.gpu.driver import Device, library
from penstock.gpu.memory import pool
from penstock.gpu.stream import Stream


def test_marks_are_behind_what_the_stream_waits_for():
    device = Device.get(0)
    with device:
        stream, other = Stream(device), Stream(device)
        memory = pool(device).take(64, stream)
        stream.fill(memory.address, 1, 64)
        early = stream.mark()
        assert stream.mark() is early  # nothing was enqueued in between
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


def priority_of(stream: int) -> tuple[int, int]:
    """The priority of a stream, and the lowest priority, which is the largest number."""
    priority, lowest = ctypes.c_int(), ctypes.c_int()
    with Device.get(0):
        assert library().cuStreamGetPriority(ctypes.c_void_p(stream), ctypes.byref(priority)) == 0
        assert library().cuCtxGetStreamPriorityRange(ctypes.byref(lowest), None) == 0
    return priority.value, lowest.value


def test_a_pipelines_work_has_the_lowest_priority():
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        return fn.flip(fn.external_source([[np.zeros((4, 4, 3), "u1")] * 2] * 8, layout="HWC").gpu())

    made = pipe()
    streams = {made.run(-1)[0].stream for _ in range(4)}
    assert streams and all(priority == lowest for priority, lowest in map(priority_of, streams))


def test_stats_tell_the_share_of_the_gpus_time():
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe():
        return fn.flip(fn.external_source([[np.zeros((4, 4, 3), "u1")] * 2] * 8, layout="HWC").gpu())

    made = pipe()
    for _ in range(4):
        made.run()
    stats = made.stats()
    busy_s = sum(stats["gpu"]["ms_per_batch"].values()) / 1e3 * stats["batches"]
    assert busy_s > 0 and stats["gpu"]["share"] == min(busy_s / stats["seconds"], 1.0)
    assert f"GPU: busy for this pipeline {stats['gpu']['share']:.1%} of the time;" in str(stats)
