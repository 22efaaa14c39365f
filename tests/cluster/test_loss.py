# SPDX-License-Identifier: Apache-2.0
"""Workers that die, are stopped or can't work: each batch arrives exactly once, in order, and bit for bit the same."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from pipelines import all_ready, assert_same, exists, pictures, pool_of, processes, values, wait_until, write_pictures

from penstock.cluster import local_link
from penstock.cluster import worker_pool as pool_module
from penstock.external import arena


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures"))


def memory_files(pid="self"):
    """Number of penstock's shared memory files that a process has open."""
    folder = f"/proc/{pid}/fd"
    links = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if os.path.islink(f"{folder}/{fd}")]
    return sum("memfd:penstock" in link for link in links)


@pytest.mark.parametrize("seed", [1, 2])
def test_workers_killed_at_random(files, seed):
    rng = np.random.default_rng(seed)
    plain, crewed = pictures(files, True, random_shuffle=True), pictures(files, True, random_shuffle=True, workers=3)
    all_ready(crewed)
    killed, over = [], threading.Event()

    def kill():
        while not over.wait(rng.uniform(0.05, 0.5)):
            pids = [p for p in processes(crewed) if exists(p)]
            if pids:
                killed.append(int(rng.choice(pids)))
                os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            i = 0
            while i < 30 or len(killed) < 3:
                assert_same(values(plain.run()), values(crewed.run()), i)
                assert plain.checkpoint() == crewed.checkpoint()
                i += 1
    finally:
        over.set()
        thread.join()
    crewed.close()


def test_a_stopped_worker_is_late_and_another_one_is_asked(files, monkeypatch):
    monkeypatch.setattr(pool_module, "LATE_SECONDS", 0.3)
    plain, crewed = pictures(files), pictures(files, workers=2)
    all_ready(crewed)
    for _ in range(4):
        assert_same(values(plain.run()), values(crewed.run()))
    stopped = processes(crewed)[0]
    os.kill(stopped, signal.SIGSTOP)
    for i in range(20):
        assert_same(values(plain.run()), values(crewed.run()), i)
    os.kill(stopped, signal.SIGCONT)  # its data is now dropped
    wait_until(lambda: not pool_of(crewed).slots[0].is_late)
    for i in range(20):
        assert_same(values(plain.run()), values(crewed.run()), i)
    assert processes(crewed)[0] == stopped
    crewed.close()


def test_all_workers_stopped(files, monkeypatch):
    monkeypatch.setattr(pool_module, "LATE_SECONDS", 0.2)
    plain, crewed = pictures(files), pictures(files, workers=1)
    all_ready(crewed)
    for _ in range(3):
        assert_same(values(plain.run()), values(crewed.run()))
    pid = processes(crewed)[0]
    os.kill(pid, signal.SIGSTOP)
    for i in range(5):
        assert_same(values(plain.run()), values(crewed.run()), i)
    crewed.close()  # ends the process although it is stopped
    wait_until(lambda: not exists(pid))


def test_without_any_worker_left_the_trainer_makes_batches_with_one_warning(files, monkeypatch):
    monkeypatch.setattr(pool_module, "_MOST_FAILURES", 1)
    plain, crewed = pictures(files), pictures(files, workers=2)
    all_ready(crewed)
    for pid in processes(crewed):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(m.state == "gone" for m in pool_of(crewed).slots))  # no batch is blamed for their deaths
    with pytest.warns(UserWarning, match=r"no worker is left.*SIGKILL") as told:
        for i in range(12):
            assert_same(values(plain.run()), values(crewed.run()), i)
    assert len(told) == 1
    crewed.close()


def test_workers_that_cannot_be_started(files, monkeypatch):
    """For example if the machine has reached its process limit: the pipeline does not wait forever."""

    def fails(link):
        raise OSError(11, "no processes left")

    monkeypatch.setattr(local_link.LocalLink, "open", fails)
    plain, pipe = pictures(files), pictures(files, workers=2)
    with pytest.warns(UserWarning, match="no worker is left.*no processes left") as told:
        for i in range(12):
            assert_same(values(plain.run()), values(pipe.run()), i)
    assert len(told) == 1
    pipe.close()


def test_no_memory_for_a_batch(files, monkeypatch):
    """The batch is requested again from a new worker."""
    take, left = arena.Regions.take, [12]

    def takes(regions, nbytes):
        left[0] -= 1
        if left[0] in (0, 1):
            raise OSError(12, "no memory left")
        return take(regions, nbytes)

    monkeypatch.setattr(arena.Regions, "take", takes)
    plain, pipe = pictures(files), pictures(files, workers=2)
    all_ready(pipe)
    first = set(processes(pipe))
    for i in range(40):
        assert_same(values(plain.run()), values(pipe.run()), i)
    assert left[0] < 0
    all_ready(pipe)
    assert set(processes(pipe)) != first
    pipe.close()


def test_nothing_is_left_after_close(files):
    before = memory_files()
    threads = threading.active_count()
    pipe = pictures(files, workers=2)
    batch = pipe.run()
    pids = processes(pipe)
    assert memory_files() > before
    pipe.close()
    assert not any(map(exists, pids))
    del batch
    wait_until(lambda: memory_files() == before)
    wait_until(lambda: threading.active_count() <= threads)


def test_nothing_is_left_of_a_pipeline_that_is_deleted(files):
    pipe = pictures(files, workers=2)
    pipe.run()
    pids = processes(pipe)
    del pipe
    wait_until(lambda: not any(map(exists, pids)))


PROGRAM = """
import sys, time
sys.path[:0] = [{folder!r}]
from pipelines import pictures, processes
pipe = pictures({files!r}, workers=2)
pipe.run()
print(*processes(pipe), flush=True)
{rest}
"""


def run_program(files, rest):
    """The process, and the pids of its workers."""
    program = PROGRAM.format(folder=os.path.dirname(__file__), files=files, rest=rest)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return process, [int(p) for p in process.stdout.readline().split()]


@pytest.mark.parametrize(
    "rest", ["", "sys.exit(3)", "raise ValueError", "import os; os._exit(0)"], ids=["end", "exit", "raise", "_exit"]
)
def test_nothing_is_left_after_exit(files, rest):
    process, pids = run_program(files, rest)
    out, err = process.communicate(timeout=60)
    assert len(pids) == 2
    wait_until(lambda: not any(map(exists, pids)))
    assert "Traceback" not in err or rest == "raise ValueError", err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM], ids=["INT", "KILL", "TERM"])
def test_nothing_is_left_after_signals(files, number):
    process, pids = run_program(files, "while True: pipe.run(); time.sleep(0.001)")
    try:
        assert len(pids) == 2
        time.sleep(0.2)
        os.killpg(process.pid, number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    wait_until(lambda: not any(map(exists, pids)))
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in err
    assert "penstock-workers" not in err


def test_a_forked_child_leaves_the_workers_alone(files):
    plain, pipe = pictures(files), pictures(files, workers=2)
    assert_same(values(plain.run()), values(pipe.run()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            pipe.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    pids = processes(pipe)
    for i in range(12):
        assert_same(values(plain.run()), values(pipe.run()), i)
    assert processes(pipe) == pids
    pipe.close()
