# SPDX-License-Identifier: Apache-2.0
"""Amount of work in flight on a GPU: concurrent and prefetched batches, and memory passed between decoders. Streams are
blocked, so that nothing depends on the machine's speed."""

import ctypes
import os
import time
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

import encoded_images
from penstock import fn, pipeline_def
from penstock.gpu.driver import Device
from penstock.gpu.memory import pool
from penstock.operators.decode.gpu.decoding import Engines

if os.environ.get("PENSTOCK_TEST_GPU") == "1":
    pytest.skip("only streams of the emulated device can be held", allow_module_level=True)

LONG = 60.0  # seconds, timeout of events that must happen
FILES = [
    np.frombuffer(encoded_images.encode(encoded_images.photograph(i, 24 + 8 * i, 32), "JPEG").tobytes(), "u1")
    for i in range(3)
]


def decoder(**options):
    @pipeline_def(batch_size=3, num_threads=2, device_id=0, **options)
    def pipe():
        files = fn.external_source(source=lambda i: [FILES[(i + j) % 3] for j in range(3)], background=True)
        return fn.decoders.image(files, device="mixed", hw_decoder_load=0.0)

    return pipe()


@contextmanager
def held(streams):
    """Work enqueued in these streams inside the block starts at its end."""
    lib = ctypes.CDLL(os.environ["PENSTOCK_CUDA_DRIVER"])
    lib.emulated_hold.restype = ctypes.c_void_p
    gates = [lib.emulated_hold(ctypes.c_void_p(s.handle)) for s in streams]
    try:
        yield
    finally:
        for gate in gates:
            lib.emulated_let_go(ctypes.c_void_p(gate))


def comes(condition):
    end = time.monotonic() + LONG
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


@pytest.mark.parametrize("was_brief", [False, True])
def test_batches_overlap_while_the_gpu_works(was_brief):
    pipe = decoder()
    pipe.build()
    session, production = pipe._plan.session, pipe._executor._production
    if was_brief:
        production._took = (1,) * len(production._took)
    with ExitStack() as stack:
        stack.enter_context(held(session._streams))
        pipe.schedule_run()
        assert comes(lambda: session.passes == 3) and (session.at_once, session.ahead) == (5, 1)
        assert pipe._executor.pending == 3
    for i in range(8):
        (images,) = pipe.share_outputs() if i < 2 else pipe.run()
        assert images.shape()[0] == (24 + 8 * (i % 3), 32, 3)
    assert pipe._executor.pending == 2 + session.ahead == 6
    assert comes(lambda: session.passes == 14)
    with held(session._streams):
        pipe.run()
        assert comes(lambda: session.passes == 15)
    for i in range(9, 15):
        (images,) = pipe.run()
        assert images.shape()[0] == (24 + 8 * (i % 3), 32, 3)
    pipe.close()


def test_a_limit_of_memory_is_not_spent_on_more_batches():
    pipe = decoder(device_memory_limit=64 << 20)
    for _ in range(6):
        pipe.run()
    session = pipe._plan.session
    assert (session.at_once, session.ahead, len(session._streams)) == (5, 1, 5) and pipe._executor.pending <= 3
    plans = [kept for kept in session.kept.values() if not isinstance(kept, Engines)]
    assert plans and not any(kept._idle for kept in plans)
    pipe.close()


@pytest.mark.parametrize("when", ["from the beginning", "later"])
def test_large_batches_are_not_made_ahead_by_as_many(when):
    pipe = decoder()
    pipe.build()
    session = pipe._plan.session
    assert session._is_large == session.device.total_memory // 8
    if when == "later":
        for _ in range(8):
            pipe.run()
        assert session.ahead == 4 and pipe._executor.pending == 6
        session._is_large = session.budget.peak
    else:
        pipe.run()
        session._is_large = 2 * session.budget.peak
    for _ in range(12):
        pipe.run()
    assert session.ahead == 1 and pipe._executor.pending <= 3
    pipe.close()


def test_prefetching_nothing_is_nothing_ahead():
    pipe = decoder(exec_async=False, exec_pipelined=False)
    pipe.run()
    assert pipe._executor.pending == 0
    pipe.close()


def test_outputs_of_decoders_are_made_when_they_are_given_out():
    pipe = decoder()
    for _ in range(8):
        (images,) = pipe.run(-1)
        assert images._batch.ready.passed
    pipe.close()


def test_memory_that_is_handed_on_ends_with_the_pipeline():
    device = Device.get(0)
    before = pool(device).held, pool(device, True).held
    pipe = decoder()
    for _ in range(8):
        pipe.run()
    (kept,) = (k for name, k in pipe._plan.session.kept.items() if name.startswith("JPEG"))
    assert comes(lambda: kept._idle)
    pipe.close()
    assert not kept._idle
    del pipe
    assert pool(device).held <= before[0] and pool(device, True).held <= before[1]
