# SPDX-License-Identifier: Apache-2.0
"""Random programs give the same results in all modes, regardless of when values are kept, released and read."""

import gc
import random
import threading

import numpy as np
import pytest

from penstock.core.errors import PipelineError
from penstock.experimental import dynamic as ndd

X = np.random.default_rng(0).integers(0, 255, (3, 9, 8, 3), "u1")


def step(r, held, rng, failing):
    """Calls a random operator on random existing values."""
    x = r.choice(held)
    kind = r.randrange(12 if failing else 11)
    if kind == 0:
        return ndd.flip(x, horizontal=r.randrange(2), vertical=r.randrange(2))
    if kind == 1:
        return ndd.crop(
            x, crop=(r.randrange(4, 7), r.randrange(4, 7)), crop_pos_x=r.random(), out_of_bounds_policy="pad"
        )
    if kind == 2:
        return ndd.resize(x, size=(r.randrange(6, 12), r.randrange(6, 12)))
    if kind == 3:
        return ndd.noise.gaussian(x, stddev=9.0, rng=rng)
    if kind == 4:
        return ndd.brightness(x, brightness=ndd.random.uniform(range=[0.5, 1.5], batch_size=3, rng=rng))
    if kind == 5:
        return ndd.cast(x + r.choice(held).slice[:1, :1], dtype=ndd.uint8)  # broadcast: it may have one pixel
    if kind == 6:
        return ndd.transpose(ndd.transpose(x, perm=[1, 0, 2]), perm=[1, 0, 2])
    if kind == 7:
        return ndd.cat(x, x, axis=r.randrange(2))
    if kind == 8:
        return ndd.resize(x, size=(6, 7), resize_x=None) if r.random() < 0.5 else ndd.flip(x.select([2, 0, 1]))
    if kind == 9:
        mean = ndd.reductions.mean(ndd.as_tensor(np.float32([r.random(), 1])) + 0)  # of one sample
        return ndd.brightness(x, brightness=mean)
    if kind == 10:
        return ndd.as_batch(X, layout="HWC")
    return ndd.crop(x, crop=(999, 999))  # fails


def look(x):
    try:
        return [np.array(t) for t in x.tensors]
    except PipelineError as e:
        return "reaches out" in str(e)


def program(seed, mode, failing=False):
    """The results of a random program."""
    r, rng, seen = random.Random(seed), ndd.random.RNG(seed), []
    held = [ndd.as_batch(X, layout="HWC")]
    with mode:
        for _ in range(40):
            try:
                held.append(step(r, held, rng, failing))
            except PipelineError:  # depending on the mode, the call or a later one raises the error
                pass
            if len(held) > 1 and r.random() < 0.3:
                del held[r.randrange(1, len(held))]
            if r.random() < 0.15:
                chosen = r.choice(held)
                seen.append(chosen)
                if mode is not ndd.EvalMode.sync_cpu:
                    look(chosen)
            if r.random() < 0.05:
                ndd.EvalContext.current().evaluate_all()
                gc.collect()
    return [look(x) for x in [*seen, *held]]


@pytest.mark.parametrize("seed", range(12))
def test_modes_agree(seed):
    want = program(seed, ndd.EvalMode.sync_cpu)
    for mode in (ndd.EvalMode.deferred, ndd.EvalMode.eager, ndd.EvalMode.deferred):
        got = program(seed, mode)
        assert len(got) == len(want)
        for a, b in zip(got, want):
            for x, y in zip(a, b):
                np.testing.assert_array_equal(x, y, strict=True)


def test_threads_agree():
    """Several threads at once, each in its own context."""
    want, got = [program(s, ndd.EvalMode.sync_cpu) for s in range(4)], {}
    threads = [threading.Thread(target=lambda s=s: got.update({s: program(s, ndd.EvalMode.eager)})) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for s in range(4):
        for a, b in zip(got[s], want[s], strict=True):
            for x, y in zip(a, b):
                np.testing.assert_array_equal(x, y, strict=True)


@pytest.mark.parametrize("seed", range(6))
def test_failures_stay_where_they_are(seed):
    """If operators fail, all other results are the same in each mode, and nothing hangs."""
    for mode in (ndd.EvalMode.deferred, ndd.EvalMode.eager):
        results = program(seed, mode, True)
        again = program(seed, mode, True)
        assert len(results) == len(again)
        for a, b in zip(results, again):
            assert (a is True) == (b is True)
            if a is not True:
                for x, y in zip(a, b):
                    np.testing.assert_array_equal(x, y)
    assert any(r is True for s in range(6) for r in program(s, ndd.EvalMode.deferred, True))
