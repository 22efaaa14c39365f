# SPDX-License-Identifier: Apache-2.0
"""Iterations over videos that end early, in whatever way, leave no threads, files or memory behind."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import penstock.video
from penstock.core.kernels import library

av = pytest.importorskip("av", reason="PyAV is not installed")

from encoded_videos import clip  # noqa: E402

N = 90


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("videos") / "video.mp4"
    file.write_bytes(clip(n=N, size=(48, 64), codec_options=(("g", "20"), ("bf", "2"))))
    return file


def held() -> tuple[int, int]:
    """Threads and open files of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def assert_released(before: tuple[int, int]) -> None:
    """The system lists a thread for a moment after it was waited for."""
    until = time.monotonic() + 5
    while held() != before and time.monotonic() < until:
        time.sleep(0.01)
    assert held() == before


def resident_mb() -> float:
    return int(next(x for x in Path("/proc/self/status").open() if x.startswith("VmRSS")).split()[1]) / 1e3


def in_child(check) -> None:
    """Runs `check` in a forked process."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            check()
            status = 0
        finally:
            os._exit(status)
    until = time.monotonic() + 30
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    assert ended[1] == 0


def test_abandoned_iterations(path):
    """Also in several threads at once, and of videos that are closed or deleted while they are decoded."""

    def abandon(k: int) -> None:
        video = penstock.video.open(path)
        frames = iter(video)
        for _ in range(k % 25):
            next(frames)
        if k % 3 == 0:
            video.close()
        elif k % 3 == 1:
            del video
        if k % 2:
            frames.close()

    def all_of(ks: range) -> float:
        with ThreadPoolExecutor(4) as pool:
            [*pool.map(abandon, ks)]
        gc.collect()
        return resident_mb()

    before = held()
    first = all_of(range(500))
    assert all_of(range(500)) < first + 20
    assert_released(before)


def test_an_exception_in_the_loop(path):
    before = held()
    for _ in range(20):
        with contextlib.suppress(ZeroDivisionError):
            for i, _ in enumerate(penstock.video.open(path)):
                1 / (9 - i)
    assert_released(before)


def test_an_interrupt(path):
    """Ctrl-C at any time."""
    before, rng, n = held(), np.random.default_rng(0), 0

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupted)
    try:
        for _ in range(20):
            video = penstock.video.open(path)
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.005, 0.03))
                while True:
                    for _ in video:
                        pass
            except KeyboardInterrupt:
                n += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, former)
    del video
    gc.collect()
    assert n == 20
    assert_released(before)


def test_a_lost_iteration(path):
    """As an interrupt leaves it between the start of its threads and the assignment of what is returned."""
    before = held()
    video = penstock.video.open(path)
    library().video_stream_open(video._handle.value, 0)
    video.close()
    assert_released(before)


def test_forks(path):
    """The child has the video and its iterators, but not their threads."""
    video = penstock.video.open(path)
    want = video[:]
    for read in (0, 1, 12, 60):
        frames = iter(video)
        for _ in range(read):
            next(frames)

        def uses_video():
            np.testing.assert_array_equal(video[:], want)
            np.testing.assert_array_equal(np.stack(list(video)), want)

        def continues():
            np.testing.assert_array_equal(np.stack([*frames]), want[read:])  # noqa: B023

        def deletes():
            frames.close()  # noqa: B023

        for check in (uses_video, continues, deletes):
            in_child(check)
        np.testing.assert_array_equal(np.stack([*frames]), want[read:])


@pytest.mark.parametrize("ends", ["", "raise SystemExit", "1 / 0", "del video"])
def test_a_program_that_ends_while_it_iterates(path, ends):
    program = f"""
import sys, threading
import penstock.video
video = penstock.video.open(sys.argv[1])
frames = iter(video)
for _ in range(12):
    next(frames)
def forever():
    while True:
        for _ in penstock.video.open(sys.argv[1]):
            pass
for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
{ends}
"""
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60)
        assert ran.returncode == (ends == "1 / 0"), ran.stderr
        assert ("ZeroDivisionError" in ran.stderr) if ends == "1 / 0" else not ran.stderr
