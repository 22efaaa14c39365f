# SPDX-License-Identifier: Apache-2.0
"""An unused pipeline ends immediately: none of its parts waits for Python's cyclic garbage collector."""

import contextlib
import gc
import sys
import time
import weakref

import numpy as np
import pytest

from encoded_images import encode, photograph
from penstock import fn, pipeline_def, types

FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()
IMAGES = [np.full((8, 9, 3), k, "u1") for k in range(8)]


def images(device="cpu"):
    x = fn.external_source(source=lambda i: IMAGES, layout="HWC")
    return x.gpu() if device == "gpu" else x


def plain(device):
    return fn.resize(fn.brightness(images(device), brightness=2), size=(4, 5))


def reader(device):
    jpegs, _ = fn.readers.file(file_root="pictures", random_shuffle=True)
    return fn.resize(fn.decoders.image(jpegs, device="mixed" if device == "gpu" else "cpu"), size=(4, 5))


def bad_picture(device):
    return fn.decoders.image(fn.external_source(source=lambda i: [np.zeros(10, "u1")] * 8))


def bad_argument(device):
    shape = fn.external_source(source=lambda i: [np.float32([20, 20])] * 8)
    return fn.crop(images(device), crop=shape)


def source_raises(device):
    def source(i):
        if i:
            raise KeyError("of the user's")
        return IMAGES

    return fn.external_source(source=source, layout="HWC", device=device)


def function_raises(device):
    def function(x):
        raise KeyError("of the user's")

    return fn.python_function(images(), function=function)


def ended(device):
    return fn.external_source(source=[IMAGES, IMAGES], layout="HWC", device=device)


def conditional(device):
    x = images(device)
    if fn.random.coin_flip(dtype=types.BOOL):
        x = fn.brightness(x, brightness=2)
    else:
        x = fn.contrast(x, contrast=2)
    return x


def function(device):
    return fn.python_function(images(), function=lambda x: x + 1)


def in_threads(device):
    return fn.external_source(source=lambda i: IMAGES[0], batch=False, parallel=True)


def to_the_user(device):
    return images(device).cpu() if device == "gpu" else fn.copy(images())


DEFINITIONS = (plain, reader, bad_picture, bad_argument, source_raises, function_raises, ended, conditional, function)
DEFINITIONS += (in_threads, to_the_user)


def parts_of(pipe):
    """The parts of a built or debug-mode pipeline that have threads, memory or user code."""
    if pipe._executor is None:
        yield from (pipe._eager, *pipe._eager.pools)
        return
    production = pipe._executor._production
    yield from (pipe._plan, production, production.producer.pool, production.producer.io, pipe._executor._workers)
    yield from (c for c in (pipe._plan.session,) if c is not None)
    yield from (chain for chains in pipe._plan.chains.values() for chain in chains)


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Files for `reader`, which are small: an emulated GPU takes seconds for photographs."""
    (tmp_path / "pictures" / "a").mkdir(parents=True)
    for k in range(8):
        encode(photograph(k, 60 + k, 90), "JPEG").tofile(tmp_path / "pictures" / "a" / f"{k}.jpg")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def collected():
    """What other tests have left is gone."""
    gc.collect()


@pytest.fixture
def without_collector(collected):
    gc.disable()
    yield
    gc.enable()


def assert_gone(kept):
    limit = time.monotonic() + 10
    while (left := [r() for r in kept if r() is not None]) and time.monotonic() < limit:
        left = None  # a reference
        time.sleep(0.01)
        if FREE_THREADED:  # references released by another thread are merged when the owning thread runs or collects
            gc.collect()
    assert not left, [type(x).__name__ for x in left]


@pytest.mark.parametrize(
    "how", ({}, {"debug": True}, {"on_error": "skip"}, {"on_error": "replace"}, {"autotune": True})
)
@pytest.mark.parametrize("device", ("cpu", "gpu"))
@pytest.mark.parametrize("define", DEFINITIONS, ids=lambda d: d.__name__)
def test_nothing_is_left(define, device, how, without_collector, pictures):
    conditionals = {"enable_conditionals": True} if define is conditional else {}
    workers = {"py_num_workers": 1, "py_start_method": "thread"} if define is in_threads else {}
    if workers and "debug" in how:
        pytest.skip("has no workers")
    pipe = pipeline_def(define, batch_size=8, num_threads=2, device_id=0, **conditionals, **workers, **how)(device)
    for _ in range(6):
        with contextlib.suppress(Exception):
            pipe.run()
    kept = [weakref.ref(x) for x in (pipe, *parts_of(pipe))]
    del pipe
    assert_gone(kept)


def test_nothing_is_left_of_one_that_is_not_built(without_collector):
    pipe = pipeline_def(plain, batch_size=8)("cpu")
    kept = [weakref.ref(pipe), weakref.ref(pipe.definition)]
    del pipe
    assert_gone(kept)


def test_a_caught_error_keeps_what_the_user_wants_to_see(without_collector):
    """It keeps the variables of the user's function, but none of ours."""
    values = []

    def source(i):
        local = np.full(3, 7)
        values.append(weakref.ref(local))
        raise KeyError(local.sum())

    pipe = pipeline_def(lambda: fn.external_source(source=source), batch_size=1)()
    with pytest.raises(KeyError) as caught:
        pipe.run()
    frame = caught.traceback[-1].frame
    assert frame.f_locals["local"].tolist() == [7, 7, 7] and values[0]() is not None
    of_pipeline = weakref.ref(pipe._executor._production)
    del pipe, frame, caught
    assert_gone([of_pipeline, *values])
