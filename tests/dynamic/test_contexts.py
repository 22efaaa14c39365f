# SPDX-License-Identifier: Apache-2.0
"""Contexts, threads and processes of the imperative mode."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from penstock.experimental import dynamic as ndd

pytest.importorskip("torch")

X = np.arange(2 * 6 * 5 * 3, dtype=np.uint8).reshape(2, 6, 5, 3)


def images():
    """Read-only data."""
    return ndd.as_batch(X, layout="HWC") + np.uint8(0)


def too_large():
    return ndd.crop(images(), crop=(9, 9))


def test_contexts(runs):
    with ndd.EvalContext(num_threads=1) as inner:
        assert ndd.EvalContext.current() is inner and inner.num_threads == 1 and inner.device_id in (None, 0)
        with ndd.EvalMode.deferred:
            x = ndd.zeros(shape=[2], batch_size=2)
    assert runs[-1] == ["zeros"]  # at the end of the context
    outer = ndd.EvalContext.current()
    assert outer is ndd.EvalContext.default() and outer is not inner
    pool = ndd.ThreadPool(2)
    shared = ndd.EvalContext(thread_pool=pool)
    assert shared.thread_pool is pool and shared.num_threads == pool.num_threads == 2
    with shared, ndd.EvalMode.deferred:
        y = x + 1
        with ndd.EvalContext():
            z = y + 1  # waits for a result of another context
            assert z.torch().tolist() == [[2, 2]] * 2
    for wrong, error in (
        ({"num_threads": -1}, ValueError),
        ({"num_threads": "a"}, TypeError),
        ({"thread_pool": 3}, TypeError),
    ):
        with pytest.raises(error):
            ndd.EvalContext(**wrong)
    with pytest.raises(ValueError, match="together"):
        ndd.EvalContext(num_threads=2, thread_pool=pool)
    before = ndd.get_num_threads()
    ndd.set_num_threads(1)
    assert ndd.get_num_threads() == outer.num_threads == 1
    ndd.set_num_threads(None)
    assert ndd.get_num_threads() == before
    with pytest.raises(ValueError):
        ndd.set_num_threads(0)


def test_an_exception_leaves_a_context_alone():
    with pytest.raises(KeyError), ndd.EvalContext(), ndd.EvalMode.deferred:
        too_large()
        raise KeyError
    assert ndd.EvalMode.current() is ndd.EvalMode.eager


def test_threads_have_contexts_modes_and_generators_of_their_own():
    results, errors = {}, []

    def work(k):
        try:
            ndd.random.set_seed(k)
            for _ in range(20):
                x = ndd.random.uniform(batch_size=8, shape=[100])
                y = ndd.crop(images(), crop=(3, 3)).torch()
            results[k] = x.torch().sum().item(), y.sum().item()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k // 2,)) for k in range(6)]
    with ndd.EvalMode.deferred:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not errors and len({v for v in results.values()}) == 3


def test_one_value_is_computed_once_for_many_threads(runs):
    x = images().evaluate()
    del runs[:]
    with ndd.EvalMode.deferred:
        y = ndd.flip(ndd.crop(x, crop=(3, 3)))
    threads = [threading.Thread(target=y.evaluate) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(runs) == 1 and y.shape == [(3, 3, 3)] * 2


def test_long_chains_and_memory():
    x = images().evaluate()
    with ndd.EvalMode.deferred:
        y = x
        held = weakref.ref(ndd.flip(y))
        for _ in range(60):
            y = ndd.flip(y)
    np.testing.assert_array_equal(np.asarray(ndd.as_tensor(y)), X)
    gc.collect()
    assert held() is None
    assert y._invocation is None  # only the data is kept


FORKS = """
import os, threading, time
from penstock.experimental import dynamic as ndd
x = ndd.zeros(shape=[400, 400, 3], dtype=ndd.uint8, layout="HWC", batch_size=8).evaluate()
for _ in range(6):
    y = ndd.resize(x, size=(300, 300))  # the thread in the background may be at it
    time.sleep(0.002)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if y.shape == [(300, 300, 3)] * 8 and ndd.flip(x).shape[0] == (400, 400, 3) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert y.shape == [(300, 300, 3)] * 8
print("done")
"""
PROGRAM = """
import numpy as np, os, sys
from penstock.experimental import dynamic as ndd
x = ndd.zeros(shape=[50, 50, 3], dtype=ndd.uint8, layout="HWC", batch_size=4)
y = ndd.resize(x, size=(20, 20))
if sys.argv[1] == "fork":
    y.evaluate()
    pid = os.fork()
    z = ndd.flip(y) + 1
    assert z.shape == [(20, 20, 3)] * 4 if sys.argv[2] == "look" else True
    if pid == 0:
        sys.stdout.flush(); os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print("done")
"""


@pytest.mark.parametrize("arguments", [("exit", ""), ("fork", "look"), ("fork", "")])
def test_processes_end_and_fork(arguments):
    pytest.importorskip("torch")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, env=env, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_forks_while_the_background_is_at_work():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], capture_output=True, text=True, env=env, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
