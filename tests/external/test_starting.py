# SPDX-License-Identifier: Apache-2.0
"""Starting workers: by fork, spawned with pickled sources, before pipelines are built."""

import gc
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
import sources
from sources import build, values

from penstock import fn, ops, pickling, pipeline_def, types
from penstock.external import by_value
from penstock.pipeline import Pipeline

AFRESH = ["spawn", "forkserver"]
FACTOR = 3


def scaled(info):
    return np.int32([FACTOR * info.idx_in_epoch])


def local_source(offset):
    scale = 10

    def inner(i):
        return np.int32([scale * i + offset]) if i >= 0 else inner(-i)

    def source(info, extra=1):
        return inner(-info.idx_in_epoch) + extra

    return source


@pytest.mark.parametrize("method", AFRESH)
def test_functions_that_can_not_be_imported_work(method):
    assert values(build(local_source(5), method).run()) == [[10 * i + 6] for i in range(4)]
    assert values(build(lambda info: np.int32([os.getpid() != 0, FACTOR]), method).run()) == [[1, 3]] * 4


@pytest.mark.parametrize("method", AFRESH)
def test_a_local_generator_function_works(method):
    def gives():
        for i in range(3):
            yield [np.int32([i])]

    pipe = build(gives, method, batch=True, cycle=True)
    assert [values(pipe.run())[0][0] for _ in range(4)] == [0, 1, 2, 0]


def recursive(n):
    return 1 if n < 2 else n * recursive(n - 1)


def keyword(*, a=2, **more):
    return a, more


def test_functions_by_value():
    for function, args, want in [
        (recursive, (5,), 120),
        (keyword, (), (2, {})),
        (lambda x: [y * FACTOR for y in x], ([1, 2],), [3, 6]),
        (lambda: np.float32(1).dtype.name, (), "float32"),
    ]:
        marked = pickling.pickle_by_value(function)
        copy = pickle.loads(by_value.dumps(marked))
        assert copy is not function and copy(*args) == want
        assert copy.__qualname__ == function.__qualname__
    with pytest.raises(TypeError, match="decorates a function"):
        pickling.pickle_by_value(3)


def test_importable_functions_go_by_name():
    assert pickle.loads(by_value.dumps(scaled)) is scaled


class Recorder:
    """A pickler of the user's."""

    def __init__(self):
        self.seen = []

    def dumps(self, obj, mark=None):
        self.seen.append(mark)
        return by_value.dumps(obj)

    @staticmethod
    def loads(data, times=1):
        assert times == 2
        return pickle.loads(data)


def test_own_picklers():
    own = Recorder()
    pipe = build(scaled, "spawn", pipe_args={"py_callback_pickler": (own, {"mark": 7}, {"times": 2})})
    assert values(pipe.run()) == [[3 * i] for i in range(4)] and own.seen == [7]
    with pytest.raises(TypeError, match="py_callback_pickler takes a module"):
        build(scaled, "spawn", pipe_args={"py_callback_pickler": 3}).build()


def test_workers_may_be_started_before_anything_is_built():
    pipes = [build(sources.ten), build(sources.numbered)]
    for pipe in pipes:
        pipe.start_py_workers()
        pipe.start_py_workers()  # a second call has no effect
    pids = [set(pipe._workers.pids()) for pipe in pipes]
    assert len(pids[0] | pids[1]) == 4
    for pipe in pipes:
        pipe.build()
    assert [len(values(pipe.run())) for pipe in pipes] == [4, 4]
    assert [set(pipe._workers.pids()) for pipe in pipes] == pids


class OldStyle(Pipeline):
    def __init__(self):
        super().__init__(batch_size=4, num_threads=1, py_num_workers=2)
        self.input = ops.ExternalSource(source=sources.ten, parallel=True, batch=False, dtype=types.INT32)

    def define_graph(self):
        return self.input()


def test_sub_classes_of_pipeline():
    pipe = OldStyle()
    pipe.start_py_workers()
    assert values(pipe.run()) == [[i, 0] for i in range(4)]


def test_pipelines_without_parallel_sources_start_nothing():
    pipe = pipeline_def(lambda: fn.external_source(lambda i: np.zeros((1, 1))), batch_size=1)()
    pipe.start_py_workers()
    assert pipe._workers is None and pipe.external_source_shm_statistics() == {
        "capacities": [],
        "per_sample_capacities": [],
    }
    pipe.run()


def test_all_workers_work():
    pids = {v for (v,) in values(build(sources.OfPid(), workers=3, batch_size=60).run())}
    assert len(pids) == 3 and os.getpid() not in pids


def test_positions_by_name_and_place():
    @pipeline_def(batch_size=2)
    def pipe():
        a = fn.external_source(lambda i: np.full((2, 1), i, "i4"))
        b, c = fn.external_source(lambda i: (np.zeros((2, 1)), np.ones((2, 1))), 2)
        (d,) = ops.ExternalSource(lambda i: (np.zeros((2, 1)),), 1)()
        return a, b, c, d

    assert len(pipe().run()) == 4
    with pytest.raises(TypeError, match="'source' twice"):
        build(sources.ten) and pipeline_def(lambda: fn.external_source(sources.ten, source=sources.ten), batch_size=1)()
    with pytest.raises(TypeError, match="3 positional arguments"):
        pipeline_def(lambda: fn.external_source(sources.ten, 1, 2), batch_size=1)()


def test_a_pipeline_that_is_dropped_takes_its_workers_along():
    pipe = build(sources.ten)
    pipe.run()
    pids = pipe._workers.pids()
    del pipe
    gc.collect()
    end = time.monotonic() + 5
    while any(os.path.exists(f"/proc/{p}") for p in pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(os.path.exists(f"/proc/{p}") for p in pids)


def test_a_script_that_spawns_without_a_guard_is_told(tmp_path):
    script = tmp_path / "no_guard.py"
    script.write_text("import sources\npipe = sources.build(sources.ten, 'spawn')\npipe.run()\n")
    folder = os.path.dirname(os.path.abspath(__file__))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, *(p for p in sys.path if p)])}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 1
    assert "ended with exit code 1 before it was ready" in done.stderr and "if __name__ == '__main__':" in done.stderr


def test_state_of_a_source_says_where_to_go_on():
    pipe = build(sources.ten, pipe_args={"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False})
    op = pipe.definition.nodes[0].op
    first = values(pipe.run())
    state = op.state()
    assert state == {"epoch": 0, "iteration": 1, "in_epoch": 4, "ended": 0} and not op.begins_epoch(state)
    second = values(pipe.run())
    op.restore(state)
    assert values(pipe.run()) == second != first
    with pytest.raises(StopIteration):
        pipe.run()
    assert op.state()["ended"] == 1


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_nothing_is_left_open_at_exit(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(f"""
import numpy as np
from penstock import fn, pipeline_def

def source(info):
    return np.zeros(3, np.float32)

@pipeline_def(batch_size=2, num_threads=1, py_num_workers=2, py_start_method="{method}")
def definition():
    return fn.external_source(source, batch=False, parallel=True)

if __name__ == "__main__":
    pipe = definition()
    pipe.run()
""")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
