# SPDX-License-Identifier: Apache-2.0
"""Data that is too large, has too many dimensions, or is empty."""

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def


def run(graph, n=2):
    @pipeline_def(batch_size=n, num_threads=1)
    def pipe():
        return graph()

    return pipe().run()[0]


def nine():
    return fn.external_source(source=lambda i: [np.zeros((1,) * 9, "u1")] * 2)


@pytest.mark.parametrize(
    "graph",
    [
        lambda: fn.ones(shape=[1] * 9),
        lambda: fn.random.uniform(shape=[2] * 9),
        lambda: fn.random.uniform(nine()),
        lambda: fn.reshape(fn.ones(shape=[1]), shape=[1] * 9),
        lambda: fn.copy(nine()),
        lambda: nine() + 1,
    ],
)
def test_at_most_eight_dimensions(graph):
    with pytest.raises((RuntimeError, ValueError), match="samples of 9 dimensions are not possible; at most 8 are"):
        run(graph)


def test_views_are_named():
    with pytest.raises(PipelineError, match="(?s)`penstock.fn.reshape`.*samples of 9 dimensions"):
        run(lambda: fn.reshape(fn.external_source(source=lambda i: [np.zeros(1)] * 2), shape=[1] * 9))


def test_the_source_is_named():
    with pytest.raises(PipelineError, match="(?s)`penstock.fn.external_source`.*samples of 9 dimensions"):
        run(nine)
    with pytest.raises(PipelineError, match="(?s)`penstock.fn.external_source`.*samples of 9 dimensions"):
        run(lambda: fn.external_source(source=lambda i: np.zeros((2,) + (1,) * 9, "u1")))


@pytest.mark.parametrize(
    "graph",
    [
        lambda: fn.ones(shape=[2**31 - 1] * 3),
        lambda: fn.random.choice(3, shape=[2**31 - 1] * 2),
        lambda: fn.random.beta(shape=np.int32([0] + [2**31 - 1] * 3)),
        lambda: fn.pad(np.zeros((0, 1, 1, 1), "u1"), axes=[1, 2, 3], shape=[2**31 - 1] * 3),
    ],
)
def test_no_memory_is_large_enough(graph):
    with pytest.raises(RuntimeError, match="no memory is large enough for|could not allocate 1106804643391780946"):
        run(graph)


def test_it_is_said_what_the_memory_was_for():
    """Also in a chain, and if a program plans it."""
    sizes = iter([4, 5, 2**31 - 1])

    def graph():
        size = fn.external_source(source=lambda: [np.int32([next(sizes)] * 3)] * 2)
        return fn.pad(fn.cast(np.zeros((1, 1, 1), "u1"), dtype=np.float64), axes=[0, 1, 2], shape=size)

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def pipe():
        return graph()

    p = pipe()
    assert [p.run()[0].shape()[0] for _ in range(2)] == [(4, 4, 4), (5, 5, 5)]
    with pytest.raises(
        PipelineError, match=r"(?s)`penstock.fn.pad`.*samples of the shapes \[\[2147483647, 2147483647, "
    ):
        p.run()


@pytest.mark.parametrize("layout", ["HWC", "FHWC", "HW", None])
def test_batches_without_samples(layout):
    """They have the number of dimensions of their layout."""
    with_layout = layout in ("HWC", "FHWC")

    def graph():
        x = fn.external_source(source=lambda i: [], layout=layout)
        return fn.crop(fn.flip(fn.hsv(x, hue=3.0)), crop=[1, 1]) if with_layout else fn.copy(x)

    assert len(run(graph)) == 0
