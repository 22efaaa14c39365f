# SPDX-License-Identifier: Apache-2.0
"""Pipelines that are dropped, closed, interrupted, or used by several threads."""

import gc
import os
import signal
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.core.kernels import library


@pipeline_def(batch_size=4, num_threads=2, seed=1)
def read(files):
    return tuple(fn.readers.file(files=files, name="reader"))


@pipeline_def(batch_size=4, num_threads=2, seed=1)
def calls(source, **kwargs):
    return fn.external_source(source=source, background=True, **kwargs)


def labels(outputs):
    return outputs[1].as_array().ravel().tolist()


def threads_of_process():
    return len(os.listdir("/proc/self/task"))


def settled(count, limit):
    """Whether `count()` falls to `limit` within some seconds."""
    end = time.monotonic() + 10
    while count() > limit and time.monotonic() < end:
        time.sleep(0.05)
    return count() <= limit


class TestDropped:
    def test_before_it_ran(self, files):
        pipe = read(files)
        pipe.build()
        dead = weakref.ref(pipe)
        del pipe
        gc.collect()
        assert dead() is None

    def test_in_the_middle(self, files):
        for n in range(5):
            pipe = read(files)
            for _ in range(n):
                pipe.run()
            pipe.schedule_run()
            pipe.schedule_run()
            del pipe

    def test_its_callback_refers_to_it(self):
        class Owner:
            def __init__(self):
                self.pipe = calls(self.sample)

            def sample(self, i):
                return np.full((4, 2), i, "i4")

        owner = Owner()
        owner.pipe.run()
        before, dead = threads_of_process(), weakref.ref(owner)
        del owner

        def alive():
            gc.collect()  # a thread may have been running last time
            return dead() is not None

        assert settled(alive, 0)
        assert settled(threads_of_process, before - 3)

    def test_outputs_outlive_it(self, files):
        pipe = read(files)
        outputs = pipe.run()
        del pipe
        gc.collect()
        others = [read(files) for _ in range(3)]
        for other in others:
            other.run()
        assert [bytes(outputs[0].at(i)) for i in range(4)] == [bytes([i]) * (1000 + i) for i in range(4)]

    def test_while_a_callback_does_not_return(self):
        release = threading.Event()

        def source(i):
            release.wait(30)
            return np.zeros((4, 1), "f4")

        pipe = calls(source)
        pipe.schedule_run()
        begin = time.monotonic()
        del pipe
        assert time.monotonic() - begin < 20
        release.set()


def test_no_leaks(files):
    def use():
        pipe = read(files)
        pipe.run()
        pipe.schedule_run()

    for _ in range(20):
        use()
    gc.collect()
    assert settled(threads_of_process, threads_of_process())
    time.sleep(0.2)
    threads, fds, memory = threads_of_process(), len(os.listdir("/proc/self/fd")), library().memory_used()
    resident = resident_bytes()
    for _ in range(500):
        use()
    gc.collect()
    assert settled(threads_of_process, threads)
    assert len(os.listdir("/proc/self/fd")) <= fds
    assert library().memory_used() <= memory
    assert resident_bytes() - resident < 30e6


def resident_bytes():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_batches_are_given_back_while_idle(files):
    """The threads of an idle pipeline do not keep batches."""
    pipe = read(files)
    pipe.run()
    outputs = [pipe.run() for _ in range(3)]
    held = library().memory_used()
    del outputs
    # Without the GIL, references to what another thread made are only counted down when that thread runs or by a full
    # collection, and what they held is freed by the next one.
    for _ in range(1 if getattr(sys, "_is_gil_enabled", lambda: True)() else 3):
        gc.collect()
    assert library().memory_used() < held


class TestClosed:
    def test_close_then_run(self, files):
        pipe = read(files)
        pipe.run()
        pipe.close()
        pipe.close()
        with pytest.raises(RuntimeError, match="the pipeline is closed; build another one"):
            pipe.run()

    def test_close_while_another_thread_waits(self):
        release, seen = threading.Event(), []

        def source(i):
            release.wait(30)
            return np.zeros((4, 1), "f4")

        pipe = calls(source)

        def wait():
            try:
                pipe.run()
            except RuntimeError as e:
                seen.append(str(e))

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        closing = threading.Thread(target=pipe.close)
        closing.start()
        waiting.join(20)
        release.set()
        closing.join(20)
        assert not waiting.is_alive() and not closing.is_alive()
        assert seen and "closed" in seen[0]

    def test_a_source_that_does_not_return_is_waited_for_once(self, monkeypatch):
        begun, release, joined = threading.Event(), threading.Event(), []

        def source(i):
            begun.set()
            release.wait(60)
            return np.zeros((4, 1), "f4")

        pipe = calls(source)
        pipe.schedule_run()
        begun.wait(60)
        pipe._executor._workers.stop(0.01)
        monkeypatch.setattr(threading.Thread, "join", lambda thread, timeout=None: joined.append(thread.name))
        pipe.close()
        del pipe
        gc.collect()
        assert not joined
        release.set()


class TestCallbackErrors:
    def test_the_exception_arrives_and_the_pipeline_runs_on(self):
        class Mine(Exception):
            pass

        def source(i):
            if i == 1:
                raise Mine("no data today")
            return np.full((4, 1), i, "i4")

        pipe = calls(source)
        assert pipe.run()[0].as_array()[0, 0] == 0
        with pytest.raises(Mine, match="no data today"):
            pipe.run()
        # A source that always fails for an iteration must not stop everything: the next iteration is requested.
        assert pipe.run()[0].as_array()[0, 0] == 2

    def test_even_one_that_ends_programs(self):
        def source(i):
            raise SystemExit("stop")

        pipe = calls(source)
        with pytest.raises(SystemExit):
            pipe.run()
        with pytest.raises(SystemExit):
            pipe.run()


@pytest.fixture
def interruptible():
    """Background processes ignore interrupts; this restores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class TestInterrupted:
    def test_nothing_is_lost(self, files, interruptible):
        """After an interrupt while waiting for a batch, the next run returns that batch."""
        gate = threading.Event()
        main = threading.get_ident()

        def source(i):
            if i == 1 and not gate.is_set():
                time.sleep(0.3)
                signal.pthread_kill(main, signal.SIGINT)
                gate.wait(10)
            return np.full((4, 1), i, "i4")

        pipe = calls(source)
        seen = [int(pipe.run()[0].as_array()[0, 0])]
        with pytest.raises(KeyboardInterrupt):
            for _ in range(3):
                seen.append(int(pipe.run()[0].as_array()[0, 0]))
        gate.set()
        seen += [int(pipe.run()[0].as_array()[0, 0]) for _ in range(3)]
        assert seen == list(range(len(seen)))


class TestSeveral:
    def test_two_at_once(self, files):
        a, b = read(files), read(files[::-1])
        for _ in range(20):
            x, y = a.run(), b.run()
            assert labels(x) == labels(y)
            for i in range(4):
                assert x[0].at(i)[0] == labels(x)[i] and y[0].at(i)[0] == 9 - labels(y)[i]

    def test_one_per_thread(self, files):
        wrong = []

        def work():
            pipe = read(files)
            for k in range(40):
                if labels(pipe.run()) != [(4 * k + i) % 10 for i in range(4)]:
                    wrong.append(k)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong

    def test_one_shared_by_threads(self, files):
        """Each batch goes to one of the threads."""
        pipe, seen, lock = read(files), [], threading.Lock()

        def work():
            for _ in range(25):
                got = labels(pipe.run())
                with lock:
                    seen.append(tuple(got))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(seen) == sorted(tuple((4 * k + i) % 10 for i in range(4)) for k in range(100))


class TestReset:
    def test_in_the_middle(self, files):
        """The next epoch from the consumer's view, regardless of prefetched batches."""
        for depth in (1, 2, 7):
            pipe = read(files, prefetch_queue_depth=depth)
            assert labels(pipe.run()) == [0, 1, 2, 3]
            pipe.reset()
            assert labels(pipe.run()) == [0, 1, 2, 3]
            assert labels(pipe.run()) == [4, 5, 6, 7]

    def test_at_the_beginning_or_after_running_on(self, files):
        pipe = read(files, prefetch_queue_depth=3)
        pipe.reset()
        assert [labels(pipe.run()) for _ in range(3)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
        pipe.reset()
        assert labels(pipe.run()) == [2, 3, 4, 5]
