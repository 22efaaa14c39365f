# SPDX-License-Identifier: Apache-2.0
"""Batches of workers go to the GPU from the memory that they were made in, which is registered as pinned memory."""

import ctypes
import gc
import os
import threading
import time
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.external.arena import Region, Regions, create
from penstock.gpu import batch as gpu_batch
from penstock.gpu.driver import CudaError, Device
from penstock.gpu.memory import pool
from penstock.gpu.registered import register
from penstock.gpu.stream import Stream

IS_EMULATED = os.environ.get("PENSTOCK_TEST_GPU") != "1"
if IS_EMULATED:
    from test_reuse import held
emulated = pytest.mark.skipif(not IS_EMULATED, reason="only the emulated device counts, refuses, and holds streams")

N, SIZE = 24, 4
SHAPE = (64, 80, 3)


def registered() -> int:
    """Number of registered ranges of memory."""
    lib = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    lib.emulated_registered.restype = ctypes.c_int64
    return lib.emulated_registered()


def none_registered() -> bool:
    end = time.monotonic() + 10
    while IS_EMULATED and registered() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    return not IS_EMULATED or not registered()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("arrays")
    rng = np.random.default_rng(5)
    for i in range(N):
        np.save(made / f"{i:02}.npy", rng.integers(0, 255, SHAPE, dtype=np.uint8))
    return str(made)


@pytest.fixture
def moved(monkeypatch):
    """Bytes of batches that were copied to pinned blocks."""
    found = []
    counting = SimpleNamespace(memmove=lambda to, at, n: found.append(n) or ctypes.memmove(to, at, n))
    monkeypatch.setattr(gpu_batch, "ctypes", counting)
    return found


def define(body, **options):
    @pipeline_def(batch_size=SIZE, num_threads=1, seed=3, device_id=0, **options)
    def pipe(folder):
        x = fn.readers.numpy(file_root=folder, file_filter="*.npy", random_shuffle=True, seed=7, name="reader")
        return body(x)

    return pipe


def flipped(x):
    return fn.flip(x.gpu(), horizontal=fn.random.coin_flip())


def ragged(x):
    """Samples of different shapes."""
    size = fn.cast(fn.random.uniform(range=(5, 60), shape=(2,)), dtype=types.INT32)
    return fn.flip(fn.resize(x, size=size).gpu())


def on_host(batch):
    return [[np.array(s) for s in output.as_cpu()] for output in batch]


def assert_same(a, b):
    for x, y in zip(a, b, strict=True):
        for s, t in zip(x, y, strict=True):
            np.testing.assert_array_equal(s, t)


@pytest.mark.parametrize("options", [{}, {"prefetch_queue_depth": 1}, {"exec_pipelined": False}], ids=str)
@pytest.mark.parametrize("body", [flipped, ragged], ids=lambda b: b.__name__)
def test_the_same_bytes_without_a_copy(folder, moved, body, options):
    plain = define(body, **options)(folder)
    expected = [on_host(plain.run()) for _ in range(30)]
    plain.close()
    moved.clear()
    crewed = define(body, **options)(folder, workers=1)
    for want in expected:
        assert_same(want, on_host(crewed.run()))
    # A batch that is larger than all before it, and those asked for meanwhile, do not fit into their regions.
    assert len(moved) <= (3 if body is flipped else len(expected) // 2)
    assert not IS_EMULATED or registered()
    crewed.close()
    assert none_registered()


@emulated
def test_a_refusal_of_the_driver(folder, moved, monkeypatch):
    monkeypatch.setenv("PENSTOCK_EMULATED_LOCKED", "0")
    plain = define(flipped)(folder)
    expected = [on_host(plain.run()) for _ in range(8)]
    plain.close()
    moved.clear()
    crewed = define(flipped)(folder, workers=2)
    for want in expected:
        assert_same(want, on_host(crewed.run()))
    assert len(moved) >= 8
    assert not registered()
    crewed.close()


@pytest.fixture
def regions():
    fd = create(1)
    made = Regions(fd, lambda at, nbytes: register(Device.get(0), at, nbytes))
    yield made
    made.close()
    os.close(fd)
    assert none_registered()


def test_what_the_driver_says_of_memory(regions):
    device, lease = Device.get(0), regions.take(4096)
    assert register(device, lease.region.address, 4096) is None  # registered already
    with device, pytest.raises(CudaError, match="unpinning"):
        device.unregister(Region(regions.fd, 1 << 30, 4096).address)


@emulated
def test_a_region_is_not_reused_before_its_copy(regions):
    """Nor does who wants another one wait."""
    device = Device.get(0)
    with device:
        stream, memory = Stream(device), pool(device)
        block = memory.take(4096, stream)
        lease = regions.take(4096)
        busy = lease.region
        with held(stream):
            busy.pinned.used_on(stream)
            busy.view[:4096] = 7
            stream.upload(block.address, busy.address, 4096)
            del lease
            others = [regions.take(4096) for _ in range(3)]
            assert busy not in [lease.region for lease in others] and not busy.is_idle
            stream.fill(block.address, 0, 1)  # later work is not waited for, but done in order
        stream.synchronize()
        assert regions.take(4096).region is busy


@emulated
def test_a_smaller_region_is_not_dropped_before_its_copy(regions):
    device = Device.get(0)
    with device:
        stream = Stream(device)
        block = pool(device).take(4096, stream)
        lease = regions.take(4096)
        small = lease.region
        with held(stream):
            small.pinned.used_on(stream)
            small.view[:4096] = 7
            stream.upload(block.address, small.address, 4096)
            del lease
            large = []
            taking = threading.Thread(target=lambda: large.append(regions.take(1 << 20)))
            taking.start()
            taking.join(20)
            assert large and registered() == 2 and (small.view[:4096] == 7).all()
        stream.synchronize()
        large.append(regions.take(1 << 20))
        assert registered() == 2 and small.offset not in regions.capacities


@emulated
def test_closing_waits_for_copies(regions):
    device = Device.get(0)
    with device:
        stream = Stream(device)
        block = pool(device).take(4096, stream)
        kept, lease = regions.take(100), regions.take(4096)
        with held(stream):
            lease.region.pinned.used_on(stream)
            stream.upload(block.address, lease.region.address, 4096)
            del lease
            closing = threading.Thread(target=regions.close)
            closing.start()
            closing.join(0.2)
            assert closing.is_alive() and registered() >= 1
        closing.join(60)
        assert registered() == 1  # that of the batch which is kept
        kept.region.view[:] = 1
        del kept
        assert not registered()


@emulated
def test_workers_get_no_memory_that_is_still_to_be_copied(folder):
    """The device is held: no batch has been copied when the next ones are made. It tells if one is changed then."""
    plain, crewed = define(flipped)(folder), define(flipped)(folder, workers=1)
    expected = [on_host(plain.run()) for _ in range(16)]
    assert_same(expected[0], on_host(crewed.run()))
    got = []
    thread = threading.Thread(target=lambda: got.extend(crewed.run(-1) for _ in range(12)), daemon=True)
    with ExitStack() as holding:
        for stream in list(crewed._plan.session._streams):
            holding.enter_context(held(stream))
        thread.start()
        thread.join(60)
        assert len(got) == 12 and not any(out._batch.ready.done() for (out,) in got[-4:])
    for want, batch in zip(expected[1:], got):
        assert_same(want, on_host(batch))
    crewed.close()


def both(x):
    return x, x.gpu(), fn.reshape(x, layout="HWC")


def views(x):
    """One output is a view of what is copied to the GPU."""
    y = fn.flip(x, vertical=1)
    return fn.reshape(y, shape=[-1, 3]), fn.flip(y.gpu())


@emulated
@pytest.mark.parametrize("body", [both, views], ids=lambda b: b.__name__)
def test_users_may_write_to_what_they_get(folder, body):
    """Also where the GPU has not copied it yet."""
    plain, crewed = define(body)(folder), define(body)(folder, workers=1)
    expected = [on_host(plain.run()) for _ in range(16)]
    assert_same(expected[0], on_host(crewed.run()))
    got = []
    with ExitStack() as holding:
        for stream in list(crewed._plan.session._streams):
            holding.enter_context(held(stream))
        for _ in range(12):
            got.append(crewed.run(-1))
            for out in got[-1]:
                if out._batch.on_host:
                    for i in range(SIZE):
                        out.at(i)[...] = 0
        assert not any(out._batch.ready.done() for batch in got[-4:] for out in batch if not out._batch.on_host)
    for want, batch in zip(expected[1:], got):
        for x, out in zip(want, batch):
            if not out._batch.on_host:
                assert_same([x], on_host([out]))
    crewed.close()


def test_batches_that_are_kept(folder):
    """Longer than the pipeline."""

    def define_both(x):
        return x + 1, x.gpu()

    plain, crewed = define(define_both)(folder), define(define_both)(folder, workers=2)
    expected = [on_host(plain.run()) for _ in range(12)]
    kept = [crewed.run() for _ in range(12)]
    crewed.close()
    del crewed
    for want, batch in zip(expected, kept):
        assert_same(want, on_host(batch))
    del kept, batch
    assert none_registered()


def test_a_lost_worker(folder):
    plain, crewed = define(flipped)(folder), define(flipped)(folder, workers=2)
    for i in range(12):
        if i % 4 == 2:
            for slot in crewed._executor._production.producer.workers.slots:
                if slot.link is not None and slot.link._process is not None:
                    os.kill(slot.link._process.pid, 9)
                    break
        assert_same(on_host(plain.run()), on_host(crewed.run()))
    crewed.close()
    assert none_registered()


@emulated
def test_a_forked_child_unregisters_nothing(folder):
    crewed = define(flipped)(folder, workers=1)
    for _ in range(6):
        crewed.run()
    before = registered()
    assert before
    pid = os.fork()
    if not pid:
        try:
            for found in gc.get_objects():
                if isinstance(found, Regions):
                    found.close()
            os._exit(registered() != before)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    crewed.close()
    assert none_registered()
