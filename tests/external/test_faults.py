# SPDX-License-Identifier: Apache-2.0
"""Workers and main processes that die or hang leave nothing behind."""

import faulthandler
import gc
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sources
from sources import PROCESSES, Does, build, values

from penstock import PipelineError
from penstock.external import launch, pool

processes = pytest.mark.parametrize("method", PROCESSES)


def next_error(pipe, n=4):
    """The error of one of the next `n` batches."""
    begin = time.monotonic()
    with pytest.raises(PipelineError) as caught:
        for _ in range(n):
            pipe.run()
    assert time.monotonic() - begin < 60
    return str(caught.value)


def goes_on(pipe):
    before = values(pipe.run())[0][0]
    assert [v[0][0] for v in (values(pipe.run()) for _ in range(3))] == [before + 4, before + 8, before + 12]


@processes
def test_a_killed_worker_is_named_and_replaced(method, tmp_path):
    pipe = build(Does(6, "os.kill(os.getpid(), 9)", tmp_path / "done"), method)
    told = next_error(pipe)
    assert "was killed by SIGKILL (by `kill -9`, or by the kernel because memory is short" in told
    assert "while it made sample 2 of iteration 1, epoch 0 (idx_in_epoch 6), by Does (sources.py:" in told
    assert "worker process" in told and "(pid " in told
    goes_on(pipe)


def test_a_worker_that_ends_by_itself(tmp_path):
    pipe = build(Does(6, "os._exit(7)", tmp_path / "done"))
    assert "ended with exit code 7 while it made sample 2 of iteration 1" in next_error(pipe)
    goes_on(pipe)


def test_the_only_worker_dies_again_and_again():
    def dies(info):
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)

    pipe = build(dies, workers=1)
    for _ in range(3):
        assert "SIGSEGV (a crash in native code)" in next_error(pipe, 1)
    pipe.close()


def test_idle_workers_may_die_unnoticed():
    pipe = build(sources.ten, workers=2)
    first = values(pipe.run())
    time.sleep(0.3)  # prefetched data is complete
    for pid in pipe._workers.pids():
        os.kill(pid, signal.SIGKILL)
    assert first + values(pipe.run()) == [[i, 0] for i in range(8)]
    with pytest.raises(StopIteration):
        pipe.run()


def test_a_worker_found_dead_is_replaced_once():
    """Its end may be noticed before its socket is seen closed."""
    pipe = build(sources.ten, workers=1)
    assert values(pipe.run()) == [[i, 0] for i in range(4)]
    pool = pipe._workers
    while pool._pending or pool._workers[0].waiting:  # prefetched data is complete
        with pool._lock:
            pool._listen(10)
    (before,) = pool.pids()
    os.kill(before, signal.SIGKILL)
    while pool._workers[0].process.exitcode() is None:
        time.sleep(0.01)
    with pool._lock:
        pool._look_after()
    (after,) = pool.pids()
    assert after != before and pool._restarts == 1
    assert values(pipe.run()) == [[i, 0] for i in range(4, 8)]


def test_an_iterable_whose_worker_died_does_not_begin_again_in_silence(tmp_path):
    flag = str(tmp_path / "done")

    def gives():
        for i in range(9):
            if i == 2:
                Does(i, "os.kill(os.getpid(), 9)", flag)(type("", (), {"idx_in_epoch": i}))
            yield [np.int32([i])]

    pipe = build(gives, batch=True)
    assert "was killed by SIGKILL" in next_error(pipe)
    assert "the place in the iteration was lost" in next_error(pipe, 1)
    pipe = build(gives, batch=True, cycle="raise")  # can be restarted
    assert [values(pipe.run())[0][0] for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("method", ["fork", "spawn", "thread"])
def test_a_source_that_never_returns(method, tmp_path):
    pipe = build(Does(6, "time.sleep(1000)", tmp_path / "done"), method, timeout=1.0)
    told = next_error(pipe)
    assert "took longer than timeout=1 s while it made sample 2 of iteration 1" in told
    if method != "thread":
        assert "It is at, innermost first:" in told and "in __call__" in told and "sources.py" in told
    goes_on(pipe)


def test_a_slow_source_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_WARN_SECONDS", 0.5)
    pipe = build(Does(2, "time.sleep(2)", tmp_path / "done"))
    with pytest.warns(RuntimeWarning, match="has been busy for [12] s while it made sample 2 of iteration 0"):
        assert values(pipe.run()) == [[i] for i in range(4)]


def test_memory_that_is_short_is_an_error_of_the_sample(tmp_path):
    what = "def no(*a): raise OSError(28, 'No space left on device')\nos.posix_fallocate = no"
    pipe = build(Does(0, what, tmp_path / "done"), workers=1)
    with pytest.raises(MemoryError, match="no shared memory for .*No space left"):
        pipe.run()


def test_exceptions_in_del_do_no_harm():
    for method in ("fork", "thread"):
        pipe = build(sources.BadDel(), method)
        assert values(pipe.run()) == [[i] for i in range(4)]
        pipe.close()


@pytest.mark.parametrize("method", ["fork", "thread"])
def test_nothing_is_left_of_pipelines(method):
    def counts():
        gc.collect()
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        mapped = sum("memfd:penstock" in line for line in Path("/proc/self/maps").read_text().splitlines())
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), len(children), mapped

    def use(close):
        pipe = build(sources.growing, method, n_outputs=2)
        for _ in range(4):
            pipe.run()
        if close:
            pipe.close()

    use(True)
    before, last = counts(), None
    while before != last:  # pipelines of other tests may still be ending
        time.sleep(0.5)
        before, last = counts(), before
    for i in range(6):
        use(i % 2)
    end = time.monotonic() + 5
    while any(now > then for now, then in zip(counts(), before)) and time.monotonic() < end:
        time.sleep(0.05)
    now = counts()
    assert all(n <= then for n, then in zip(now, before)), f"{now} after {before}"


def test_sources_that_can_not_be_taken_over(tmp_path):
    class Local:  # can't be pickled, or imported by name
        def __call__(self, info):
            return np.int32([0])

    with pytest.raises(TypeError, match="Local.*can't be sent to workers with py_start_method='spawn'.*fork"):
        build(Local(), "spawn").build()
    told = next_error(build(FailsToLoad(), "spawn"), 1)
    assert "could not take over its sources: KeyError" in told and "in __setstate__" in told


class FailsToLoad:
    def __call__(self, info):
        return np.int32([0])

    def __getstate__(self):
        return {"a": 1}

    def __setstate__(self, state):
        raise KeyError("b")


# CUDA ---------------------------------------------------------------------------------------------------------------


def test_forking_after_cuda_is_refused(monkeypatch):
    monkeypatch.setattr(launch, "cuda_is_initialised", lambda: True)
    with pytest.raises(RuntimeError, match=r"can't be forked any more, because CUDA.*start_py_workers.*spawn"):
        build(sources.ten, "fork").build()
    assert len(values(build(sources.ten, "spawn").run())) == 4
    assert len(values(build(sources.ten, "thread").run())) == 4


CUDA = """
int initialised = 0, context = 0;
int cuDeviceGetCount(int *n) { *n = 1; return initialised ? 0 : 3; }
int cuCtxGetCurrent(void **c) { *c = 0; return 0; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDevicePrimaryCtxGetState(int d, unsigned *f, int *active) { *active = context; return 0; }
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_how_cuda_is_noticed(tmp_path):
    (tmp_path / "cuda.c").write_text(CUDA)
    library = str(tmp_path / "libcuda.so.1")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", str(tmp_path / "cuda.c"), "-o", library], check=True
    )
    text = f"""
import ctypes
from penstock.external.launch import cuda_is_initialised as told
seen = [told()]
cuda = ctypes.CDLL({library!r})
for name in ("", "initialised", "context"):
    if name: ctypes.c_int.in_dll(cuda, name).value = 1
    seen.append(told())
print(seen)
"""
    assert ended(run_script(text))[0].strip() == "[False, False, False, True]"


# Main processes that end --------------------------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys, time
import numpy as np
import sources
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what is started in the background
pipe = sources.build(sources.Does(int(sys.argv[1]), "time.sleep(1000)", sys.argv[2]), sys.argv[3])
pipe.run()
print(*pipe._workers.pids(), flush=True)
"""


def run_script(text, *arguments, **kwargs):
    folder = str(Path(__file__).parent)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *(p for p in sys.path if p)])}
    return subprocess.Popen(
        [sys.executable, "-c", text, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        **kwargs,
    )


def ended(process, seconds=30):
    """The output of a process, which is killed if it does not end."""
    try:
        return process.communicate(timeout=seconds)
    finally:
        process.kill()


def gone(pids, seconds=5):
    """Whether the processes end in that time."""

    def runs(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    end = time.monotonic() + seconds
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(runs, pids))


@pytest.mark.parametrize(
    ("method", "stuck_at"), [("fork", 10**9), ("fork", 9), ("spawn", 9), ("forkserver", 9)], ids=str
)
def test_the_main_process_is_killed(method, stuck_at, tmp_path):
    process = run_script(SCRIPT + "time.sleep(1000)", stuck_at, tmp_path / "done", method)
    pids = list(map(int, process.stdout.readline().split()))
    assert len(pids) == 2
    time.sleep(0.3)
    process.kill()
    process.wait()
    assert gone(pids)


@pytest.mark.parametrize(
    ("method", "ending"),
    [
        ("fork", ""),
        ("spawn", ""),
        ("forkserver", ""),
        ("fork", "sys.exit(3)"),
        ("fork", "raise ValueError('an end')"),
        ("fork", "os.kill(os.getpid(), 15)"),
    ],
)
def test_the_main_process_ends(method, ending, tmp_path):
    begin = time.monotonic()
    process = run_script(SCRIPT + ending, 9, tmp_path / "done", method)  # a worker is stuck
    out, err = ended(process)
    assert gone(list(map(int, out.split()))) and time.monotonic() - begin < 60
    assert process.returncode == {"": 0, "s": 3, "r": 1, "o": -15}[ending[:1]]
    assert (err == "") if ending[:1] != "r" else err.strip().endswith("ValueError: an end")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_no_worker_is_replaced_at_exit(method, tmp_path):
    """multiprocessing kills its processes and removes its sockets at exit, while a thread still waits for a batch."""
    wait = "from multiprocessing import util\nutil.Finalize(None, time.sleep, (1,), exitpriority=-200)\ntime.sleep(0.3)"
    out, err = ended(run_script(SCRIPT + wait, 9, tmp_path / "done", method))
    assert err == "" and gone(list(map(int, out.split())))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_control_c(method, tmp_path):
    process = run_script(SCRIPT + "while True: pipe.run()", 10**9, tmp_path / "done", method, start_new_session=True)
    pids = list(map(int, process.stdout.readline().split()))
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal: also to the workers
    _, err = ended(process)
    assert gone(pids)
    assert err.strip().endswith("KeyboardInterrupt") and err.count("Traceback") == 1


def test_control_c_while_a_source_is_stuck(tmp_path):
    process = run_script(SCRIPT + "pipe.run(); pipe.run()", 9, tmp_path / "done", "fork", start_new_session=True)
    pids = list(map(int, process.stdout.readline().split()))
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, err = ended(process)
    assert gone(pids) and err.strip().endswith("KeyboardInterrupt")


def test_no_use_is_made_of_dev_shm(tmp_path):
    """A full /dev/shm is simulated by a tiny one in a separate mount namespace."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs the right to make a mount namespace")
    text = (
        "import subprocess\n"
        "subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=4k', 'none', '/dev/shm'], check=True)\n"
        "open('/dev/shm/full', 'wb').write(bytes(4096))\n" + SCRIPT + "assert len(pipe.run()[0]) == 4"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *(p for p in sys.path if p)])}
    for method in PROCESSES:
        command = ["unshare", "-m", sys.executable, "-c", text, str(10**9), str(tmp_path / "done"), method]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), method


def test_a_limit_for_files_is_named():
    text = """
import resource, sources
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    sources.build(sources.ten).build()
except OSError as e:
    print(e)
"""
    out, err = ended(run_script(text))
    assert "shared memory for worker processes can't be had" in out and "ulimit -f" in out, err
