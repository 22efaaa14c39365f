# SPDX-License-Identifier: Apache-2.0
"""Reuse of GPU memory: never before all users have finished, and without unnecessary waiting between streams. Streams
are blocked to reveal the order independent of the machine's speed."""

import ctypes
import gc
import os
import time
from contextlib import contextmanager

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.gpu import memory
from penstock.gpu.driver import Device
from penstock.gpu.memory import Block, Pool
from penstock.gpu.stream import ForeignStream, Stream

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only streams of the emulated device can be held", allow_module_level=True)

SIZE = 1 << 16
SOON, LONG = 0.2, 60.0  # seconds: timeout for events that must not happen, and for those that must


@contextmanager
def held(stream):
    """Work enqueued in a stream inside the block starts at its end."""
    lib = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    lib.emulated_hold.restype = ctypes.c_void_p
    # Freeing memory waits for all streams, and pipelines of other tests free memory when they are collected.
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    gate = lib.emulated_hold(ctypes.c_void_p(stream.handle))
    try:
        yield
    finally:
        lib.emulated_let_go(ctypes.c_void_p(gate))
        if was_enabled:
            gc.enable()


def happens(event, seconds=LONG):
    end = time.monotonic() + seconds
    while not event.done() and time.monotonic() < end:
        time.sleep(0.001)
    return event.done()


@pytest.fixture
def device():
    with Device.get(0) as device:
        yield device


@pytest.fixture
def pool(device):
    made = Pool(device, False)
    yield made
    made.trim()


def test_a_stream_waits_only_for_the_work_it_needs(device):
    one, other = Stream(device), Stream(device)
    needed = one.work
    one.mark()
    with held(one):
        one.asked()
        other.wait_for(one, needed)
        assert happens(other.record())


def test_who_wants_memory_does_not_wait_for_others(device, pool):
    one, other = Stream(device), Stream(device)
    first = pool.take(SIZE, one)
    with held(one):
        one.fill(first.address, 1, SIZE)
        used = first.address
        del first
        second = pool.take(SIZE, other)
        other.fill(second.address, 2, SIZE)
        assert second.address != used and happens(other.record())
        same = pool.take(SIZE, one)  # ordered by the stream
        assert same.address == used


def test_an_idle_block_comes_before_one_that_is_in_use(device, pool):
    one, two, other = Stream(device), Stream(device), Stream(device)
    a, b = pool.take(SIZE, one), pool.take(SIZE, two)
    idle = b.address
    with held(one):
        one.fill(a.address, 1, SIZE)
        two.fill(idle, 1, SIZE)
        assert happens(two.mark())
        del a, b
        assert pool.take(SIZE, other).address == idle


def test_there_is_an_end_to_taking_more(device, pool):
    one, other = Stream(device), Stream(device)
    blocks = [pool.take(SIZE, one) for _ in range(memory._SPARE)]
    with held(one):
        for b in blocks:
            one.fill(b.address, 1, SIZE)
        of_one = {b.address for b in blocks}
        blocks.clear()
        b = None
        again = pool.take(SIZE, other)
        other.fill(again.address, 2, SIZE)
        event = other.record()
        assert again.address in of_one and not happens(event, SOON)
    assert happens(event)


@pytest.mark.parametrize("limit", ["of the pipeline", "of the GPU"])
def test_no_more_is_taken_than_there_may_be(device, pool, limit, monkeypatch):
    one, other = Stream(device), Stream(device)
    budget = memory.Budget(SIZE) if limit == "of the pipeline" else None
    if budget is None:
        monkeypatch.setattr(device, "total_memory", 3 * SIZE)
    block = pool.take(SIZE, one, budget)
    with held(one):
        one.fill(block.address, 1, SIZE)
        address = block.address
        del block
        assert pool.take(SIZE, other, budget).address == address


def test_memory_is_not_used_again_before_its_reader_is_through(device, pool, monkeypatch):
    """The reader is another library's stream, which gets the block, releases it immediately, and reads it late."""
    monkeypatch.setattr(memory, "_SPARE", 0)
    library, maker, next_one = Stream(device), Stream(device), Stream(device)
    seen = np.zeros(SIZE, "u1")
    block = pool.take(SIZE, maker)
    maker.fill(block.address, 7, SIZE)
    maker.synchronize()
    address, foreign = block.address, ForeignStream(device, library.handle)
    block.used_on(foreign)
    with held(library):
        library.download(seen.ctypes.data, address, SIZE)
        del block
        again = pool.take(SIZE, next_one)
        assert again.address == address
        next_one.fill(address, 9, SIZE)
        event = next_one.record()
        assert not happens(event, SOON)
    assert happens(event)
    library.synchronize()
    assert (seen == 7).all()


def test_what_a_framework_drops_for_the_next_batch_is_not_waited_for(device, pool):
    """As in a loop over batches: the framework's stream already waits for the next batch when the last one is released.
    The computation of the following one starts immediately."""
    framework, now, after = Stream(device), Stream(device), Stream(device)
    last = pool.take(SIZE, after)
    last.used_on(ForeignStream(device, framework.handle))
    address = last.address
    with held(now):
        framework.wait(now.mark())
        del last
        new = pool.take(SIZE, after)
        after.fill(new.address, 1, SIZE)
        assert new.address != address and happens(after.record())


@pytest.mark.parametrize("extents", [[5], range(5, 29)], ids=["kept", "computed"])
def test_small_outputs_share_memory_that_lasts_as_long_as_any(extents):
    """Each of them is correct, regardless of when the others are released."""
    n = 3

    @pipeline_def(batch_size=n, num_threads=1, device_id=0)
    def pipe():
        x = fn.external_source(lambda i: [np.full((extents[i % len(extents)], 4), i, "f4")] * n, device="gpu")
        sums = fn.reductions.sum(x, axes=[0, 1])
        return sums, x + 1, fn.reductions.max(x), fn.reductions.min(x) * 2

    p = pipe()
    held = []
    for i in range(24):
        outputs = p.run()
        assert len({id(o) for out in outputs for o in out._batch.owners if type(o) is Block}) == 1
        held.append((i, i % 4, outputs[i % 4]))
        del outputs
    for i, which, out in held:
        height = extents[i % len(extents)]
        want = [np.float32(i * height * 4), np.full((height, 4), i + 1), np.float32(i), np.float32(2 * i)][which]
        got = out.as_cpu()
        for k in range(n):
            np.testing.assert_array_equal(np.array(got.at(k)), want)
