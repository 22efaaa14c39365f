# SPDX-License-Identifier: Apache-2.0
"""Batches of repeated data are prefetched, without a visible difference for the user."""

import numpy as np
import pytest

from penstock import fn
from penstock.pipeline import Pipeline

N = 3


def pipeline(folder, depth=2, **kwargs):
    """Outputs: the fed data, a reader's data, and a random number for each sample."""
    pipe = Pipeline(N, num_threads=1, prefetch_queue_depth=depth, seed=3, **kwargs)
    with pipe:
        x = fn.external_source(name="x", repeat_last=True)
        label = fn.readers.file(files=[str(p) for p in sorted(folder.iterdir())], random_shuffle=True)[1]
        pipe.set_outputs(x, label, x + fn.random.uniform(range=(0, 1)))
    return pipe


@pytest.fixture
def folder(tmp_path):
    for i in range(17):
        (tmp_path / f"{i:02}").write_bytes(b"x")
    return tmp_path


def program(pipe, fed_at, n=40, reset_at=()):
    seen = []
    for i in range(n):
        if i in fed_at:
            pipe.feed_input("x", np.full((N, 1), i, "f4"))
        if i in reset_at:
            pipe.reset()
        seen.append([out.as_array().ravel().tolist() for out in pipe.run()])
    return seen


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("fed_at", [{0}, {0, 1, 2, 9, 10, 25}, {0, 4, 8, 12, 16}, {0, 30}])
def test_the_batches_are_those_made_when_asked_for(folder, depth, fed_at):
    for reset_at in ((), (3, 13, 14)):
        expected = program(pipeline(folder, exec_pipelined=False, exec_async=False), fed_at, reset_at=reset_at)
        assert [s[0][0] for s in expected] == [max(k for k in fed_at if k <= i) for i in range(40)]
        assert program(pipeline(folder, depth), fed_at, reset_at=reset_at) == expected


def test_repeated_data_is_prefetched_until_other_data_comes(folder):
    pipe = pipeline(folder, 3)
    pipe.feed_input("x", np.zeros((N, 1), "f4"))
    ahead = []
    for _ in range(5):
        pipe.run()
        ahead.append(pipe._executor.pending)
    assert ahead[0] == 0 and ahead[-1] == 3
    pipe.feed_input("x", np.ones((N, 1), "f4"))
    assert pipe._executor.pending == 0
    assert pipe.run()[0].as_array().ravel().tolist() == [1] * N


def test_who_feeds_for_every_batch_has_none_made_in_vain(folder):
    pipe = pipeline(folder)
    for i in range(10):
        pipe.feed_input("x", np.full((N, 1), i, "f4"))
        assert pipe.run()[0].as_array()[0, 0] == i
        assert pipe._executor.pending == 0


def test_a_checkpoint_is_behind_what_was_given_out(folder):
    pipe = pipeline(folder, enable_checkpointing=True)
    rest = program(pipe, {0}, 12)[-4:]
    again = pipeline(folder, enable_checkpointing=True)
    program(again, {0}, 8)
    saved = again.checkpoint()
    again.feed_input("x", np.full((N, 1), 0, "f4"))
    assert again.checkpoint() == saved
    assert program(again, set(), 4) == rest
    restored = pipeline(folder, enable_checkpointing=True, checkpoint=saved)
    assert program(restored, {0}, 4) == rest


def test_nothing_with_effects_of_its_own_is_run_ahead():
    called = []
    pipe = Pipeline(N, num_threads=1)
    with pipe:
        x = fn.external_source(name="x", repeat_last=True)
        pipe.set_outputs(fn.python_function(x, function=lambda a: called.append(a) or a))
    pipe.feed_input("x", np.zeros((N, 1), "f4"))
    for i in range(6):
        pipe.run()
        assert len(called) == N * (i + 1)
