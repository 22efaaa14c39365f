# SPDX-License-Identifier: Apache-2.0
"""Threads that contend for Python's lock share a core for some time; other threads are not restricted."""

import os
import sys
import threading
import time

import numpy as np
import pytest

import encoded_images
from penstock import fn, pipeline_def
from penstock.exec.plan import Plan
from penstock.exec.scheduling import shared_core
from penstock.exec.scheduling.constants import SCHEDULING
from penstock.exec.scheduling.shared_core import SharedCore

ALL = {0, 1, 2, 3, 4, 5}
HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


class Machine:
    """Six cores, a clock, and the masks of threads."""

    def __init__(self):
        self.masks, self.now, self.here, self.refuses = {}, 100.0, 3, False

    def sched_getaffinity(self, number):
        return set(self.masks.get(number, ALL))

    def sched_setaffinity(self, number, mask):
        if self.refuses:
            raise PermissionError(1, "not permitted")
        self.masks[number] = set(mask)

    def sched_getcpu(self):
        return self.here


class Thread:
    def __init__(self, number):
        self.native_id = number

    def is_alive(self):
        return True


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.setattr(shared_core.os, name, getattr(machine, name))
    monkeypatch.setattr(shared_core.ctypes, "PyDLL", lambda _: machine)
    monkeypatch.setattr(shared_core.time, "monotonic", lambda: machine.now)
    monkeypatch.setattr(shared_core.sys, "_is_gil_enabled", lambda: True, raising=False)
    return machine


def run(core, machine, batches, seconds_each=0.001, threads=(11, 12, 13)):
    for _ in range(batches):
        core.ran([Thread(n) for n in threads])
        machine.now += seconds_each


def test_threads_come_together_and_part(machine):
    core = SharedCore(True)
    machine.masks[12] = {1, 2, 3, 4}
    run(core, machine, 31)
    assert machine.masks == {12: {1, 2, 3, 4}}
    run(core, machine, 1)
    assert machine.masks == {11: {3}, 12: {3}, 13: {3}}
    machine.here = 5
    run(core, machine, 999)
    assert machine.masks == {11: {3}, 12: {3}, 13: {3}}
    run(core, machine, 2)
    assert machine.masks == {11: ALL, 12: {1, 2, 3, 4}, 13: ALL}
    machine.masks[12] = ALL  # the user's decision
    run(core, machine, 32)
    assert machine.masks == {11: {5}, 12: {5}, 13: {5}}
    core.leave()
    assert machine.masks == {11: ALL, 12: ALL, 13: ALL}


def test_batches_that_are_not_frequent_leave_threads_alone(machine):
    run(SharedCore(True), machine, 400, seconds_each=0.011)
    assert not machine.masks


def test_where_cores_are_few_or_chosen_by_the_user_threads_are_left_alone(machine):
    machine.masks = {11: {1, 3, 4}, 12: {0, 1, 2, 4, 5}}
    run(SharedCore(True), machine, 40, threads=(11, 12))
    assert machine.masks == {11: {1, 3, 4}, 12: {0, 1, 2, 4, 5}}


def test_a_system_that_refuses_is_not_asked_again(machine):
    core, machine.refuses = SharedCore(True), True
    run(core, machine, 40)
    machine.refuses = False
    run(core, machine, 400)
    assert not machine.masks


def test_without_the_lock_nothing_is_done(machine, monkeypatch):
    monkeypatch.setattr(shared_core.sys, "_is_gil_enabled", lambda: False, raising=False)
    run(SharedCore(True), machine, 400)
    run(SharedCore(False), machine, 400)
    assert not machine.masks


@pytest.fixture
def files(tmp_path):
    image = encoded_images.encode(encoded_images.photograph(1, 24, 32), "JPEG").tobytes()
    for i in range(4):
        (tmp_path / f"{i}.jpg").write_bytes(image)
    return [str(tmp_path / f"{i}.jpg") for i in range(4)]


def pipe_of(files, source):
    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipe():
        encoded = fn.readers.file(files=files)[0] if source is None else fn.external_source(source=source)
        return fn.decoders.image(encoded, device="mixed", hw_decoder_load=0.0)

    return pipe()


def masks_set(pipe, monkeypatch, batches=12):
    """Sizes of the masks set, by name of the thread."""
    given, set_before = [], os.sched_setaffinity
    names = {t.native_id: t.name for t in threading.enumerate()}

    def record(number, mask):
        names.update((t.native_id, t.name) for t in threading.enumerate())
        given.append((names[number], len(mask)))
        set_before(number, mask)

    for name, value in (("least", 1), ("free_batches", 2), ("frequent", 60), ("stay", 0)):
        monkeypatch.setattr(SCHEDULING, f"shared_core_{name}", value)
    monkeypatch.setattr(os, "sched_setaffinity", record)
    pipe.build()
    for _ in range(batches):
        pipe._executor._production._took = (1,)
        pipe.run()
        time.sleep(0.002)
    pipe.close()
    return given


@pytest.mark.parametrize("decoder, thread", (("mixed", "penstock-batch"), ("cpu", "penstock-load")))
def test_short_batches_without_mixed_decoders_are_run_by_the_loading_thread(decoder, thread, files, monkeypatch):
    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def define():
        return fn.flip(fn.decoders.image(fn.readers.file(files=files)[0], device=decoder).gpu())

    names, start = [], Plan.start

    def recorded(self, ctx, pool):
        names.append(threading.current_thread().name)
        return start(self, ctx, pool)

    monkeypatch.setattr(Plan, "start", recorded)
    pipe = define()
    pipe.build()
    for _ in range(12):
        pipe._executor._production._took = (1,)
        pipe.run()
    pipe.close()
    assert all(name.startswith(thread) for name in names[6:]), names


@pytest.mark.skipif(not HAS_GIL, reason="without the lock there is nothing to contend for")
def test_the_threads_of_a_gpu_pipeline_share_a_core(files, monkeypatch):
    mine = os.sched_getaffinity(0)
    given = masks_set(pipe_of(files, None), monkeypatch)
    together = [name for name, size in given if size == 1]
    assert set(together) >= {"penstock-load", "penstock-batch0", "penstock-settle"}
    assert all(name.startswith("penstock-") for name, _ in given)
    apart = [name for name, size in given if size == len(mine)]
    assert len(mine) == 1 or set(apart) == set(together)
    assert os.sched_getaffinity(0) == mine


def test_threads_that_run_the_users_code_stay_where_they_are(files, monkeypatch):
    data = np.fromfile(files[0], "u1")
    assert not masks_set(pipe_of(files, lambda: [data, data]), monkeypatch)
