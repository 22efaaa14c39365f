# SPDX-License-Identifier: Apache-2.0
"""User code that a batch waits for cannot wait for a batch of the same pipeline."""

import subprocess
import sys
import textwrap

import pytest

from penstock import fn, pipeline_def

PROGRAM = """
    import sys
    import numpy as np
    from penstock import fn, pipeline_def

    call, place = sys.argv[1:]

    def again():
        return getattr(pipe, call)()

    def source(i):
        if place == "source" and i == 2:
            again()
        return [np.zeros(3, np.float32)] * 2

    @pipeline_def(batch_size=2, num_threads=1)
    def definition():
        x = fn.external_source(source)
        if place == "function":
            x = fn.python_function(x, function=lambda a: (again(), a)[1])
        return x

    pipe = definition()
    for _ in range(4):
        try:
            pipe.run()
        except RuntimeError as e:
            print(e)
            break
"""


@pytest.mark.parametrize("call", ["run", "share_outputs", "schedule_run", "reset"])
@pytest.mark.parametrize("place", ["function", "source"])
def test_a_pipeline_that_runs_itself(call, place):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), call, place],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "a pipeline can't be run or reset by its own functions and sources" in done.stdout, done.stderr


def test_another_pipeline_may_be_run():
    inner = pipeline_def(lambda: fn.constant(idata=[7]), batch_size=1, num_threads=1)()

    @pipeline_def(batch_size=2, num_threads=1)
    def outer():
        return fn.external_source(lambda i: [inner.run()[0].at(0)] * 2)

    pipe = outer()
    for _ in range(6):
        assert pipe.run()[0].as_array().tolist() == [[7], [7]]
