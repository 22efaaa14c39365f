# SPDX-License-Identifier: Apache-2.0
"""Outputs whose size the kernel determines: readers see only this size."""

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

N, BATCHES = 6, 8
EXTENT = [100, 100]


def boxes(seed):
    """Some in the middle, which remain, and some in the corners, which a rotation by 45 degrees removes."""
    r = np.random.default_rng(seed)
    samples = []
    for n in r.integers(1, 9, N):
        corner = np.where(r.random((n, 1)) < 0.5, r.uniform(0.4, 0.5, (n, 2)), r.uniform(0, 0.02, (n, 2)))
        samples.append(np.hstack([corner, corner + 0.05]).astype("f4"))
    return samples


def stay(samples):
    return [x[x[:, 0] > 0.3] for x in samples]


def turned(x):
    """Rotates forth and back, so that the remaining boxes are unchanged."""
    out = fn.bbox_rotate(x, angle=45.0, input_shape=EXTENT, keep_size=True, mode="fixed")
    return fn.bbox_rotate(out, angle=-45.0, input_shape=EXTENT, keep_size=True, mode="fixed")


def run(define, **kwargs):
    """The samples by batch and output."""

    def whole():
        given = fn.external_source(source=[boxes(k) for k in range(BATCHES)])
        made = define(given)
        return made if isinstance(made, tuple) else (made,)

    pipe = pipeline_def(whole, batch_size=N, num_threads=2, device_id=None, **kwargs)()
    batches = [pipe.run() for _ in range(BATCHES)]
    return [[[np.array(out.at(i)) for i in range(N)] for out in outputs] for outputs in batches]


def flipped(samples):
    return [np.stack([1 - x[:, 2], x[:, 1], 1 - x[:, 0], x[:, 3]], axis=1) for x in samples]


READERS = {
    "nobody": (lambda x: x, lambda samples: samples),
    "an operator with a kernel": (lambda x: fn.bb_flip(x, ltrb=True), flipped),
    "another shape": (lambda x: fn.reshape(x, shape=[-1]), lambda samples: [x.ravel() for x in samples]),
    "its shape": (lambda x: x.shape(), lambda samples: [np.array(x.shape) for x in samples]),
    "a sum": (
        lambda x: fn.reductions.sum(fn.cat(x, np.float32([[1, 1, 1, 1]])), axes=[0]),
        lambda samples: [x.sum(axis=0) + 1 for x in samples],
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_readers_see_what_was_made(reader):
    """Also from the third batch on, which uses a recorded plan."""
    define, expected = READERS[reader]
    removed = 0
    for k, (got,) in enumerate(run(lambda x: define(turned(x)))):
        removed += sum(len(x) for x in boxes(k)) - sum(len(x) for x in stay(boxes(k)))
        for x, y in zip(got, expected(stay(boxes(k)))):
            assert x.shape == y.shape
            np.testing.assert_allclose(x, y, atol=1e-5)
    assert removed > N


def test_in_branches_of_a_conditional():
    def define(x):
        many = x.shape()[0] > 4
        if many:
            y = turned(fn.bb_flip(x, ltrb=True))
        else:
            y = turned(x)
        return y, fn.bb_flip(y, ltrb=True)

    for k, (y, z) in enumerate(run(define, enable_conditionals=True)):
        given = boxes(k)
        for i, x in enumerate(stay(given)):
            whole = flipped([x])[0] if len(given[i]) > 4 else x
            for got, expected in ((y[i], whole), (z[i], flipped([whole])[0])):
                assert got.shape == expected.shape
                np.testing.assert_allclose(got, expected, atol=1e-5)


def test_what_nobody_reads_is_made_too():
    def define(x):
        labels = fn.cast(fn.reductions.sum(x, axes=[1]) * 0, dtype=types.INT32)
        kept, _ = fn.bbox_rotate(x, labels, angle=45.0, input_shape=EXTENT, keep_size=True, mode="fixed")
        return kept

    for k, (got,) in enumerate(run(define)):
        assert [len(x) for x in got] == [len(x) for x in stay(boxes(k))]
