# SPDX-License-Identifier: Apache-2.0
"""Fast batches that can't be prepared in advance, or for which there is no time to do so, are computed by the
requesting thread."""

import threading

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.exec.scheduling.constants import SCHEDULING
from penstock.exec.scheduling.production import Production
from penstock.exec.scheduling.workers import Workers

N = 4


def batch(k):
    return np.full((N, 3), k, np.int32)


@pipeline_def(batch_size=N, num_threads=2, device_id=None, seed=5)
def fed(**args):
    x = fn.external_source(name="x", **args)
    return x + 1, fn.random.uniform(range=(0, 1))


def values(pipe, k):
    pipe.feed_input("x", batch(k))
    return [np.asarray(out.as_array()) for out in pipe.run()]


@pytest.fixture
def made(monkeypatch):
    """The threads that computed batches immediately, one entry per batch."""
    threads, make = [], Workers.make

    def counted(self, ticket):
        threads.append(threading.current_thread())
        make(self, ticket)

    monkeypatch.setattr(Workers, "make", counted)
    return threads


def test_results_are_those_of_other_threads(made, monkeypatch):
    pipe = fed()
    ours = [values(pipe, k) for k in range(12)]
    assert made, "no batch was made at once"
    assert set(made) == {threading.current_thread()}
    monkeypatch.setattr(Production, "is_brief", lambda self: False)
    pipe = fed()
    for k, (x, random) in enumerate(ours):
        y, same = values(pipe, k)
        np.testing.assert_array_equal(x, batch(k + 1))
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(random, same)


def test_repeated_data(made):
    pipe = fed(repeat_last=True)
    pipe.feed_input("x", batch(3))
    for _ in range(10):
        np.testing.assert_array_equal(np.asarray(pipe.run()[0].as_array()), batch(4))
    assert made


@pipeline_def(batch_size=N, num_threads=2, device_id=None, seed=5)
def unfed():
    x = fn.random.uniform(range=(0, 1))
    return x, x + fn.batch_permutation()


def numbers(pipe):
    return [out.as_array().tolist() for out in pipe.run()]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_who_comes_back_soon_makes_batches_itself_and_who_pauses_finds_them_made(depth, made, monkeypatch):
    monkeypatch.setattr(SCHEDULING, "brief_ns", 10**12)
    pipe, ours, seen = unfed(prefetch_queue_depth=depth), [], []
    for k in range(40):
        monkeypatch.setattr(SCHEDULING, "tight_loop_ns", 10**15 if k < 15 or k >= 30 else 0)
        before = len(made)
        ours.append(numbers(pipe))
        seen.append((len(made) - before, pipe._executor.pending))
    assert seen[10:15] + seen[38:] == [(1, 0)] * 7
    assert seen[16:30] == [(0, depth)] * 14
    assert set(made) == {threading.current_thread()}
    monkeypatch.setattr(SCHEDULING, "brief_ns", 0)
    del made[:]
    again = unfed(prefetch_queue_depth=depth)
    assert [numbers(again) for _ in range(40)] == ours
    assert not made


def test_who_comes_back_soon_is_not_given_what_takes_long(made, monkeypatch):
    monkeypatch.setattr(SCHEDULING, "brief_ns", 0)
    monkeypatch.setattr(SCHEDULING, "tight_loop_ns", 10**15)
    pipe = unfed()
    for _ in range(10):
        numbers(pipe)
    assert not made and pipe._executor.pending == 2


def test_iter_setup_is_called_as_far_ahead_as_ever(made, monkeypatch):
    monkeypatch.setattr(SCHEDULING, "tight_loop_ns", 10**15)
    pipe, called = unfed(prefetch_queue_depth=3), []
    pipe.iter_setup = lambda: called.append(1)
    pipe._has_iter_setup = True
    for _ in range(10):
        numbers(pipe)
    assert len(called) == 12


@pytest.mark.parametrize("where", ["_pick", "load", "run"])
@pytest.mark.parametrize("is_after", [False, True])
def test_an_interrupted_batch_is_not_lost(where, is_after, made, monkeypatch):
    expected = [values(pipe, k) for pipe in [fed()] for k in range(10)]
    pipe = fed()
    ours = [values(pipe, k) for k in range(6)]
    method = getattr(Production, where)

    def interrupted(self, ticket):
        monkeypatch.setattr(Production, where, method)
        if is_after:
            method(self, ticket)
        raise KeyboardInterrupt

    del made[:]
    monkeypatch.setattr(Production, where, interrupted)
    pipe.feed_input("x", batch(6))
    with pytest.raises(KeyboardInterrupt):
        pipe.run()
    assert made
    ours.append([np.asarray(out.as_array()) for out in pipe.run()])
    ours += [values(pipe, k) for k in range(7, 10)]
    for a, b in zip(ours, expected):
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)


def test_errors_are_of_the_batch(made):
    pipe = pipeline_def(lambda: fn.crop(fn.external_source(name="x", layout="HWC"), crop=(3, 3)))(
        batch_size=N, num_threads=1, device_id=None
    )
    good, bad = np.zeros((N, 5, 5, 1), "u1"), np.zeros((N, 2, 2, 1), "u1")
    for k in range(10):
        pipe.feed_input("x", bad if k == 8 else good)
        if k == 8:
            with pytest.raises(RuntimeError, match="crop"):
                pipe.run()
        else:
            assert pipe.run()[0].as_array().shape == (N, 3, 3, 1)
    assert made


def user_source():
    return fn.external_source(source=batch)


def user_function():
    return fn.python_function(fn.external_source(name="x", dtype=types.INT32), function=lambda x: x)


@pytest.mark.parametrize("define", [user_source, user_function])
def test_code_of_the_user_runs_where_it_did(define, made):
    pipe = pipeline_def(define)(batch_size=N, num_threads=1, device_id=None)
    pipe.build()
    for k in range(10):
        if define is user_function:
            pipe.feed_input("x", batch(k))
        assert int(np.asarray(pipe.run()[0].as_array())[0, 0]) == k
    assert not made
