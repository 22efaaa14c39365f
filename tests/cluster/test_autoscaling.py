# SPDX-License-Identifier: Apache-2.0
"""The number of workers follows the trainer's waiting time, within limits, also when workers fail."""

import os
import queue
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from pipelines import assert_same, exists, pictures, pool_of, processes, values, wait_until, write_pictures
from test_worker_pool import asked

from penstock.cluster import worker_pool as pool_module
from penstock.cluster.autoscaling import Autoscaler, Limits, fixed
from penstock.cluster.messages import Answer
from penstock.cluster.worker_link import WorkerLost
from penstock.cluster.worker_pool import WorkerPool


def run(scaling, n, looks, waits, works):
    """The number of workers at each of `looks` checks, one second apart. `waits(n)`: fraction of time for which the
    trainer waits; `works(n)`: number of busy workers."""
    numbers, waited, busy = [], 0.0, 0.0
    for second in range(looks):
        scaling.waited = waited
        n = scaling.wanted(n, float(second), busy, second, True)
        numbers.append(n)
        waited, busy = waited + waits(n), busy + works(n)
    return numbers


class Waited(Autoscaler):
    def __init__(self, least, most):
        super().__init__(Limits(fixed(least), fixed(most)), lambda: round(self.waited * 1e9))
        self.waited = 0.0


def test_grows_until_the_trainer_does_not_wait():
    needed = 6  # workers required to keep the trainer busy
    numbers = run(Waited(1, 64), 1, 60, lambda n: max(0.0, 1 - n / needed), lambda n: min(n, needed))
    assert numbers[-1] in (needed, needed + 1)
    assert max(numbers) <= needed + 1
    assert len(set(numbers[-20:])) == 1  # the number is stable


def test_shrinks_to_what_is_needed_but_not_at_once():
    numbers = run(Waited(2, 64), 12, 100, lambda n: 0.0, lambda n: min(n, 4.0))
    assert numbers[4] == 12
    assert 5 <= numbers[-1] <= 8
    assert all(b in (a, a - 1) for a, b in zip(numbers, numbers[1:]))


def test_limits_hold():
    assert set(run(Waited(3, 5), 3, 40, lambda n: 1.0, lambda n: n)) == {3, 4, 5}
    assert min(run(Waited(3, 5), 5, 90, lambda n: 0.0, lambda n: 0.0)) == 3


def test_workers_that_are_idle_would_not_help():
    """The trainer waits for something other than the workers, such as its own part of the graph."""
    assert set(run(Waited(1, 9), 3, 40, lambda n: 0.5, lambda n: 1.9)) == {3}


def test_a_trainer_that_does_something_else_changes_nothing():
    scaling = Waited(1, 9)
    numbers = [scaling.wanted(5, float(t), 0.0, 7, True) for t in range(100)]
    assert set(numbers) == {5}


def test_a_cluster_that_changes():
    places = [4]
    scaling = Autoscaler(Limits(lambda: places[0], lambda: places[0]), lambda: 0)
    assert scaling.wanted(4, 0.0, 0.0, 0, True) == 4
    places[0] = 7
    assert scaling.wanted(4, 1.0, 0.0, 0, False) == 7
    places[0] = 2
    assert scaling.wanted(7, 2.0, 0.0, 0, False) == 2


class Queued:
    """A worker of this process that takes a while for each batch."""

    def __init__(self, index, seconds, made):
        self.name, self._seconds, self._made = f"worker {index}", seconds, made
        self._orders = queue.Queue()

    def open(self):
        pass

    def send(self, order):
        self._orders.put(order)

    def receive(self):
        order = self._orders.get(timeout=60)
        if order is None:
            raise WorkerLost("was told to end")
        time.sleep(self._seconds)
        self._made.append(order.number)
        return Answer(order.number, [], [], None, [], [], None, [], 0), []

    def hang_up(self):
        self._orders.put(None)

    def end(self):
        pass


@pytest.fixture
def by_hand(monkeypatch):
    """Only the test changes the number of workers."""
    monkeypatch.setattr(pool_module, "PERIOD_SECONDS", 1e6)


def test_who_leaves_answers_first(by_hand):
    made = []
    workers = WorkerPool(lambda i: Queued(i, 0.05, made), 4, 3, Autoscaler(Limits(fixed(4), fixed(4)), lambda: 0))
    try:
        wait_until(lambda: all(m.state == "ready" for m in workers.slots))
        batches = asked(workers, 12)
        wait_until(lambda: sum(len(m.asked) for m in workers.slots) == 12)
        with workers._lock:
            workers._resize(1)
            assert workers.size == 1
        assert all(workers.wait(b) for b in batches)
        wait_until(lambda: len(workers.slots) == 1)
        assert sorted(made) == [b.order.number for b in batches]  # each batch exactly once
        with workers._lock:
            workers._resize(3)
        assert {m.index for m in workers.slots} >= {0, 1}  # the lowest free indices
    finally:
        workers.close()


def test_threads_end_with_their_workers(by_hand):
    workers = WorkerPool(lambda i: Queued(i, 0.0, []), 1, 2, Autoscaler(Limits(fixed(1), fixed(1)), lambda: 0))
    try:
        before = threading.active_count()
        for n in (6, 1, 5, 1):
            with workers._lock:
                workers._resize(n)
            wait_until(lambda n=n: len(workers.slots) == n)
        wait_until(lambda: threading.active_count() <= before)
    finally:
        workers.close()


class Flaky(Queued):
    """A worker that can't be started while `down` is not empty."""

    def __init__(self, index, down):
        super().__init__(index, 0.0, [])
        self._down = down

    def open(self):
        if self._down:
            raise WorkerLost("has no place")


def test_others_are_tried_after_a_while(monkeypatch):
    monkeypatch.setattr(pool_module, "_AGAIN_SECONDS", 0.2)
    monkeypatch.setattr(pool_module, "PERIOD_SECONDS", 0.1)
    down = [True]
    workers = WorkerPool(lambda i: Flaky(i, down), 2, 2, Autoscaler(Limits(fixed(2), fixed(2)), lambda: 0))
    try:
        wait_until(lambda: workers.size == 0, 30)
        with pytest.warns(UserWarning, match="no worker is left, so this process makes the batches itself until"):
            assert not workers.wait(asked(workers, 1)[0])
        down.clear()
        wait_until(lambda: sum(m.state == "ready" for m in workers.slots) == 2, 30)
        assert workers.wait(asked(workers, 1)[0])
    finally:
        workers.close()


@pytest.fixture
def files(tmp_path):
    return write_pictures(tmp_path)


def test_processes_come_and_go(files, monkeypatch):
    """Slow batches add workers, and a slow trainer removes them; the batches are unchanged."""
    monkeypatch.setattr(pool_module, "PERIOD_SECONDS", 0.3)
    pipe = pictures(files, slow=True, workers=1, max_workers=3)
    pipe.build()
    workers, batches = pool_of(pipe), []

    def run_until(size, seconds_of_training):
        end = time.monotonic() + 60
        while workers.size != size:
            assert time.monotonic() < end, f"{workers.size} workers"
            whole, _, labels = pipe.run()  # not the large output: the trainer would spend time copying it
            batches.append(values((whole, labels)))
            time.sleep(seconds_of_training)

    run_until(3, 0.0)
    assert "3 workers of 1 thread" in pipe.explain()
    run_until(1, 0.5)
    wait_until(lambda: len(workers.slots) == 1)
    pids = processes(pipe)
    pipe.close()
    wait_until(lambda: not any(map(exists, pids)))
    expected = pictures(files, slow=True)
    for i, batch in enumerate(batches):
        whole, _, labels = expected.run()
        assert_same(batch, values((whole, labels)), i)


def test_workers_die_while_their_number_changes(files, by_hand):
    """The same batches, each once, in order, with a worker killed before each of them and another number of them."""
    rng = np.random.default_rng(5)
    expected, pipe = pictures(files), pictures(files, workers=2, max_workers=4)
    pipe.build()
    workers = pool_of(pipe)
    for _ in range(60):
        pids = processes(pipe)
        if pids and rng.random() < 0.3:
            with suppress(ProcessLookupError):  # it may have ended since
                os.kill(int(rng.choice(pids)), signal.SIGKILL)
        if rng.random() < 0.5:
            with workers._lock:
                workers._resize(int(rng.integers(1, 5)))
        assert_same(values(pipe.run()), values(expected.run()))
    pipe.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(min_workers=2), "min_workers=2 requires workers"),
        (dict(workers=2, min_workers=0), "min_workers takes a positive integer, or None; got 0"),
        (dict(workers=2, max_workers=1.5), "max_workers takes a positive integer, or None; got 1.5"),
        (dict(workers="auto", min_workers=3, max_workers=2), "min_workers=3 is more than max_workers=2"),
        (dict(workers=5, max_workers=4), "workers=5 is not between min_workers=None and max_workers=4"),
    ],
)
def test_limits_that_cannot_be(files, given, message):
    with pytest.raises(ValueError, match=message):
        pictures(files, **given)
