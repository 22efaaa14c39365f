# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during `run`, at each place where Python looks for interrupts: where functions begin and where calls end."""

import sys
import threading

import numpy as np
import pytest

from penstock import fn, pipeline_def

PLACES = (
    "exec/scheduling/called.py",
    "exec/scheduling/executor.py",
    "exec/scheduling/workers.py",
    "pipeline/runner.py",
)


class Interrupt:
    """Context manager that raises KeyboardInterrupt at the `k`-th place of this thread."""

    def __init__(self, k):
        self.left, self.where = k, None

    def __enter__(self):
        sys.setprofile(self._look)
        return self

    def __exit__(self, kind, error, trace):
        sys.setprofile(None)
        return kind is KeyboardInterrupt

    def _look(self, frame, event, function):
        if event in ("call", "c_return") and frame.f_code.co_filename.endswith(PLACES):
            self.left -= 1
            if self.left == 0:
                sys.setprofile(None)
                self.where = (
                    f"{frame.f_code.co_name}, line {frame.f_lineno}, {event} {getattr(function, '__name__', '')}"
                )
                raise KeyboardInterrupt


def read(tmp_path):
    for i in range(10):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i]))
    return fn.readers.file(files=[str(tmp_path / f"{i}.bin") for i in range(10)])[0]


def called(tmp_path):
    return fn.external_source(source=lambda i: np.full((1, 1), i % 10))


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def pipeline(define, slow, tmp_path):
    numbers = define(tmp_path)
    return fn.python_function(numbers, function=np.copy) if slow else numbers


def number(pipe):
    return int(pipe.run()[0].as_array().ravel()[0])


def run_thrice(pipe, got):
    got += [number(pipe) for _ in range(3)]


@pytest.mark.parametrize("slow", [False, True])  # True: the pipeline's threads make the batches
@pytest.mark.parametrize("define", [read, called])
def test_the_next_runs_continue(define, slow, tmp_path):
    """Wherever it comes, nothing hangs, and at most the batch that was being returned is lost."""
    for k in range(1, 1000):
        pipe = pipeline(define, slow, tmp_path)
        assert [number(pipe) for _ in range(4)] == [0, 1, 2, 3]
        got = []
        with Interrupt(k) as interrupt:
            got.append(number(pipe))
        if interrupt.where is None:
            break
        thread = threading.Thread(target=run_thrice, args=(pipe, got), daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive(), f"hangs after an interrupt at {interrupt.where}"
        assert got[0] in (4, 5) and np.all(np.diff(got) == 1), interrupt.where
        assert number(pipe) == got[-1] + 1, interrupt.where  # in this thread, too
        pipe.close()
    assert 30 < k < 999
