# SPDX-License-Identifier: Apache-2.0
"""Chains: joined stages, materialised values, windows, frames, several consumers."""

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types

RNG = np.random.default_rng(5)
IMAGES = [RNG.integers(0, 256, s, np.uint8) for s in ((9, 7, 3), (1, 1, 3), (16, 31, 3))]


def clip(x):
    return np.clip(x, 0, 255)


def samples(batch):
    return [np.array(batch.at(i)) for i in range(len(batch))]


def test_several_consumers_and_outputs_of_one_chain():
    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda i: IMAGES, layout="HWC")
        a = fn.brightness(x, brightness=2.0)
        b = fn.brightness(a, brightness=0.5)
        c = fn.brightness(a, brightness_shift=0.2)
        return c, a, b

    p = pipe()
    c, a, b = p.run()
    for i, x in enumerate(IMAGES):
        doubled = clip(2 * x.astype(int))
        np.testing.assert_array_equal(a.at(i), doubled)
        np.testing.assert_array_equal(c.at(i), clip(doubled + 51))
        np.testing.assert_allclose(b.at(i), doubled / 2, atol=0.5)
    assert "chain" in p.explain()


def test_argument_that_depends_on_pixels_is_computed_before_the_chain_goes_on():
    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda i: np.float32([1, 2, 3]).reshape(3, 1, 1, 1), layout="HWC")
        y = fn.brightness(x, brightness=2.0)
        return fn.brightness(x, brightness=y)

    assert pipe().run()[0].as_array().ravel().tolist() == [2, 8, 18]


@pytest.mark.parametrize("threads, depth", [(1, 1), (2, 2), (5, 4)])
def test_batches_do_not_depend_on_threads_or_depth(threads, depth):
    @pipeline_def(batch_size=3, num_threads=threads, prefetch_queue_depth=depth, seed=3)
    def pipe():
        x = fn.external_source(source=lambda i: [im + np.uint8(i) for im in IMAGES], layout="HWC")
        return fn.brightness(x, brightness=1.25)

    p = pipe()
    for i in range(6):
        for got, x in zip(samples(p.run()[0]), IMAGES):
            np.testing.assert_allclose(got, clip(1.25 * (x + np.uint8(i))), atol=0.51)


def test_outputs_outlive_the_pipeline_and_are_not_overwritten():
    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda i: np.full((2, 4, 4, 1), i, np.uint8), layout="HWC")
        return fn.brightness(x)

    p = pipe()
    kept = [p.run()[0].as_array() for _ in range(20)]
    del p
    assert [int(k.max()) for k in kept] == list(range(20)) == [int(k.min()) for k in kept]


def test_dense_outputs_share_memory():
    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        return fn.brightness(types.Constant(np.zeros((8, 8, 3), np.uint8), layout="HWC"))

    out = pipe().run()[0]
    array = out.as_array()
    assert array.ctypes.data % 64 == 0
    assert array.ctypes.data == out.at(0).ctypes.data == out.as_tensor().data_ptr()
    assert array.base is not None


def test_errors_name_operator_and_line():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.brightness(types.Constant(np.zeros((2, 2))))

    p = pipe()
    with pytest.raises(PipelineError, match=r"(?s)fn\.brightness.*test_chain\.py.*return fn\.brightness.*2 dimensions"):
        p.run()
