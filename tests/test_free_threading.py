# SPDX-License-Identifier: Apache-2.0
"""Many simultaneous threads with their own pipelines, sources and calls: all get the same bytes as alone. Most useful
with a Python without the GIL (`make free-threaded`). With the GIL, threads switch as often as possible."""

import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest

from penstock import fn, ops
from penstock.core import storage
from penstock.core.weak_set import WeakSet
from threaded_jobs import JOBS, alone, in_threads

THREADS = 6
HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.fixture(autouse=True)
def many_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@cache
def expected():
    return alone(THREADS)


def in_many(function, n=8):
    """The results of `function(i)` in n threads that start simultaneously."""
    found, errors, start = [None] * n, [], threading.Barrier(n)

    def work(i):
        try:
            start.wait()
            found[i] = function(i)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return found


def test_importing_does_not_bring_back_the_gil():
    """Compiled modules without free-threading support would, but ours is not a Python module."""
    code = "import sys, penstock; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    path = str(Path(__file__).parents[1] / "src")
    env = {k: v for k, v in os.environ.items() if k != "PYTHON_GIL"} | {"PYTHONPATH": path}
    assert subprocess.check_output([sys.executable, "-c", code], text=True, env=env).strip() == str(HAS_GIL)


def test_results_are_those_of_one_thread():
    assert in_threads(THREADS) == expected()


def test_numbers_make_a_difference():
    """Otherwise the comparison would not detect samples of another thread."""
    for job in JOBS:
        if job.__name__ not in ("watched", "loose"):
            assert len({e[job.__name__] for e in expected()}) > 1, job.__name__


@pytest.mark.slow
@pytest.mark.parametrize("attempt", range(3))
def test_the_first_use_is_in_threads(attempt):
    """Lazily created objects are needed by all threads simultaneously."""
    script = Path(__file__).with_name("threaded_jobs.py")
    done = subprocess.run([sys.executable, str(script), str(THREADS)], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    assert json.loads(done.stdout) == expected()


def test_threads_share_a_pipeline():
    """Each batch is returned to one of them."""
    from threaded_jobs import _bytes, _training

    alone, shared = _training(16, seed=3), _training(16, seed=3)
    batches = [_bytes(alone.run()) for _ in range(32)]
    parts = in_many(lambda i: [_bytes(shared.run()) for _ in range(4)], 8)
    assert sorted(b for part in parts for b in part) == sorted(batches)
    assert shared.stats()["batches"] >= 32


@pytest.mark.parametrize("module, name", [(fn, "gaussian_blur"), (ops, "GaussianBlur")])
def test_operators_are_made_once(module, name):
    for _ in range(20):
        vars(module).pop(name, None)
        found = in_many(lambda i: getattr(module, name))
        assert len(set(map(id, found))) == 1


def test_a_folder_has_one_cache(tmp_path):
    for i in range(20):
        folder = str(tmp_path / str(i))
        assert len(set(in_many(lambda _, folder=folder: storage._disk_cache(folder, 1 << 20)))) == 1


class Thing:
    pass


def test_living_objects_are_listed_while_others_begin_and_end():
    living, kept = WeakSet(), [Thing() for _ in range(5)]
    for x in kept:
        living.add(x)

    def work(i):
        for _ in range(300):
            if i % 2:
                mine = [Thing() for _ in range(20)]
                for x in mine:
                    living.add(x)
                assert mine[0] in living
                living.discard(mine[0])
                assert mine[0] not in living
            else:
                assert {*map(id, kept)} <= {*map(id, living)}

    in_many(work)
    assert {*living} == {*kept}
    kept.clear()
    x = None
    assert not list(living) and x is None


def test_plans_are_used_by_one_batch_at_a_time():
    from penstock.core.plan_cache import PlanCache

    class Planner:
        def fill(self, to, rows):
            pass

        def plan_of(self, ctx, at):
            return self

    class Batch:
        n, values = 4, {}

    planner, busy = Planner(), set()
    cache, taken = PlanCache(planner, is_traced=True), []

    def work(_):
        for _ in range(200):
            plan = cache.take(("kind",), Batch())
            if plan is not None:
                assert plan not in busy
                busy.add(plan)
                taken.append(plan)
                busy.remove(plan)
                cache.done(plan)

    in_many(work)
    assert len(taken) > 4 * len(set(taken))
