# SPDX-License-Identifier: Apache-2.0
"""Assignment of batches to workers, with workers that are queues of this process."""

import queue
import time

import numpy as np
import pytest

from penstock.cluster.autoscaling import Autoscaler, Limits, fixed
from penstock.cluster.messages import Answer
from penstock.cluster.worker_link import WorkerLost, WorkerRefused
from penstock.cluster.worker_pool import WorkerPool
from penstock.core.errors import PipelineError


class Mortal:
    """A worker that waits for `least` orders, answers `lives_for` of them, and dies."""

    def __init__(self, index, lives_for, least):
        self.name, self._left, self._least = f"worker {index}", lives_for, least
        self._orders = queue.Queue()
        self._got = []

    def open(self):
        pass

    def send(self, order):
        self._orders.put(order)

    def receive(self):
        while len(self._got) < self._least:
            order = self._orders.get(timeout=30)
            if order is None:
                raise WorkerLost("was told to end")
            self._got.append(order)
        self._least = 1
        if not self._left:
            raise WorkerLost("died")
        self._left -= 1
        return Answer(self._got.pop(0).number, [], [], None, [], [], None, [], 0), []

    def hang_up(self):
        self._orders.put(None)

    def end(self):
        pass


def scaling(n):
    return Autoscaler(Limits(fixed(n), fixed(n)), lambda: 0)


def asked(pool, n):
    position = np.zeros(0)
    return [pool.ask(0, position, position, i, {}) for i in range(n)]


def test_only_batches_that_were_begun_may_have_killed_a_worker():
    pool = WorkerPool(lambda i: Mortal(i, 1, 8), 1, 8, scaling(1))  # the last batch is with eight workers that die
    try:
        batches = asked(pool, 15)
        assert all(pool.wait(b) for b in batches[:8])
    finally:
        pool.close()


@pytest.mark.parametrize(("workers", "deaths"), [(3, "1[0-4]"), (1, "5")])
def test_a_batch_that_kills_its_workers(workers, deaths):
    """The trainer does not compute it either, if no worker is left."""
    pool = WorkerPool(lambda i: Mortal(i, 0, 1), workers, 2, scaling(workers))
    try:
        (batch,) = asked(pool, 1)
        with pytest.raises(
            PipelineError, match=f"{deaths} workers died while they made the batch of iteration 0.*died"
        ):
            pool.wait(batch)
    finally:
        pool.close()


class Refused(Mortal):
    def open(self):
        raise WorkerRefused("another version")


def test_the_work_of_a_lost_worker_still_counts_when_it_is_not_replaced():
    pool = WorkerPool(lambda i: (Mortal if i else Refused)(i, 0, 1), 2, 2, scaling(2))
    try:
        lost, end = pool.slots[0], time.monotonic() + 10
        while lost.state != "gone":
            assert time.monotonic() < end
            time.sleep(0.01)
        with pool._lock:
            lost.busy = 3.5
            pool._resize(1)
            assert lost not in pool.slots and pool._busy_before == 3.5
    finally:
        pool.close()
