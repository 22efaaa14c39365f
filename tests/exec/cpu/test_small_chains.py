# SPDX-License-Identifier: Apache-2.0
"""Small chains are started by the requesting thread; if they take long, other threads help."""

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.core import kernels
from penstock.core.batch import Batch, Spec


@pytest.mark.parametrize("n", [1, 3, 200])
def test_results(n):
    values = [np.float32([k]) for k in range(n)]

    @pipeline_def(batch_size=n, num_threads=3)
    def pipe():
        x = fn.external_source(lambda: values, batch=True)
        return fn.cast(x * 2, dtype=types.INT32)

    p = pipe()
    for _ in range(20):
        assert np.asarray(p.run()[0].as_array()).ravel().tolist() == [2 * k for k in range(n)]


def test_others_help_with_what_takes_long():
    """Windows for boxes that no window can contain, with 100,000 attempts each."""
    n = 24
    boxes = Batch.from_array(np.tile(np.float32([[0, 0, 0.01, 0.01], [0.99, 0.99, 1, 1]]), (n, 1, 1)))
    f4, i8 = np.dtype("f4"), np.dtype("i8")
    outs = [
        Batch.allocate(Spec.uniform(n, shape, t)) for shape, t in (((2,), f4), ((2,), f4), ((1,), i8), ((2, 4), f4))
    ]
    columns = {
        "position": np.arange(n, dtype="u8"),
        "dims": 2,
        "start": np.array([[0, 1]]),
        "end": np.array([[2, 3]]),
        "scaling": np.float32([[0.3, 0.4]]),
        "aspect": np.float32([[0.5, 2] * 3]),
        "thresholds": np.float32([[0.9]]),
        "n_thresholds": 1,
        "all_boxes": True,
        "attempts": 1,
        "total_attempts": 20_000,
        "prune": -1.0,
        "input": np.ones((1, 2), "f4"),
        "crop": np.ones((1, 2), "f4"),
    }
    native = kernels.kernel("bbox/random_bbox_crop")
    args, alive = native.rows(n, columns)
    slots = [[(b.rows, -1) for b in batches if b.rows_address] for batches in (outs, [boxes])]
    outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
    kernels.Pool(2).run([kernels.Step(native, args, *slots)], n, outcome)
    assert not outcome.failed and alive
    assert set(outcome.threads.tolist()) - {2}, "only the thread that asked, number 2, took samples"
