# SPDX-License-Identifier: Apache-2.0
"""Inputs without a layout: each operator assumes the first of its layouts that fits, without effect on other
operators."""

import numpy as np
import pytest

from penstock import fn, pipeline_def

RNG = np.random.default_rng(3)
CLIPS = [RNG.integers(0, 256, (2, 6, 5, 3), np.uint8), RNG.integers(0, 256, (3, 4, 7, 3), np.uint8)]
IMAGES = [x[0] for x in CLIPS]
OPERATORS = {
    "equalize": {},
    "jpeg_compression_distortion": {},
    "experimental.warp_perspective": {"matrix": [1, 0, 1, 0, 1, -1, 0, 0, 1]},
    "experimental.median_blur": {},
    "experimental.dilate": {},
    "hue": {"hue": 40},
    "flip": {},
    "resize": {"size": [3, 4]},
}


def face(name):
    found = fn
    for part in name.split("."):
        found = getattr(found, part)
    return found


def run(define, samples, layout=None):
    @pipeline_def(batch_size=len(samples), num_threads=2)
    def pipe():
        return define(fn.external_source(source=lambda: samples, layout=layout))

    return [([np.array(t.at(i)) for i in range(len(t))], t.layout()) for t in pipe().run()]


def same(a, b):
    for (x, layout), (y, other) in zip(a, b, strict=True):
        assert layout == other
        for s, t in zip(x, y, strict=True):
            np.testing.assert_array_equal(s, t)


@pytest.mark.parametrize("name", OPERATORS)
def test_four_dimensions_are_a_sequence(name):
    """FHWC is these operators' first layout with four dimensions, as in DALI."""
    op, kwargs = face(name), OPERATORS[name]
    same(run(lambda x: op(x, **kwargs), CLIPS), run(lambda x: op(x, **kwargs), CLIPS, "FHWC"))
    # The same inside a chain, after an operator without frames.
    behind = run(lambda x: op(fn.transpose(x, perm=[0, 1, 2, 3], transpose_layout=False), **kwargs), CLIPS)
    same(behind, run(lambda x: op(x, **kwargs), CLIPS, "FHWC"))


def test_others_still_see_none():
    def define(x):
        y = fn.cast(x, dtype=np.float32)
        return fn.flip(x), fn.cast(x, dtype=np.int32), fn.flip(y), y, fn.cast(y, dtype=np.int32)

    assert [layout for _, layout in run(define, IMAGES)] == ["HWC", "", "HWC", "", ""]


def test_two_operators_that_take_it_for_different_things():
    def define(x):
        y = fn.cast(x, dtype=np.int32)
        return fn.flip(y), fn.crop(y, crop=[2, 2]), fn.slice(y, start=[0], shape=[1], axes=[0])

    (flipped, first), (cropped, second), (cut, third) = run(define, CLIPS)
    assert (first, second, third) == ("FHWC", "DHWC", "")
    for x, f, c, s in zip(CLIPS, flipped, cropped, cut):
        np.testing.assert_array_equal(f, x[:, :, ::-1])
        assert c.shape == (len(x), 2, 2, 3)
        np.testing.assert_array_equal(s, x[:1])


def test_an_input_without_frames_beside_a_sequence():
    """An input that is repeated for each frame of a sequence is not a sequence for the next operator."""

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda: CLIPS, layout="FHWC")
        w = fn.external_source(source=lambda: [np.ones((3, 3), "f4")] * 2)
        return fn.filter(x, w), fn.cast(w, dtype=np.int32)

    _, w = pipe().run()
    assert w.layout() == "" and w.shape() == [(3, 3), (3, 3)]
