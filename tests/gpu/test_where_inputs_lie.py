# SPDX-License-Identifier: Apache-2.0
"""Inputs of which only the shape or type is read may be on any device, and data for planning may be on the GPU."""

import numpy as np
import pytest

from penstock import Pipeline, fn, ops, pipeline_def, types

RNG = np.random.default_rng(4)
IMAGES = [RNG.integers(0, 256, s, "u1") for s in ((5, 6, 3), (4, 7, 3))]
HALVES = [np.float32([0.25, 0.5]), np.float32([0.5, 0.25])]
MATRICES = [np.float32([[1, 0, 1], [0, 1, -1]]), np.float32([[0, 1, 0], [1, 0, 0]])]
SQUARES = [np.float32([*m, [0, 0, 1]]) for m in MATRICES]
SHAPES = [np.int32([3, -1]), np.int32([2, -1])]


def run(define, *data):
    """The output, and the output with all inputs on the CPU."""
    found = []
    for device in ("gpu", "cpu"):

        @pipeline_def(batch_size=2, num_threads=1, device_id=0, seed=3)
        def pipe(device=device):
            layouts = ["HWC" if d is IMAGES else None for d in data]
            return define(
                *(fn.external_source(source=lambda i, d=d: d, layout=y, device=device) for d, y in zip(data, layouts))
            )

        (out,) = pipe().run()
        found.append((type(out).__name__, [np.array(out.as_cpu().at(i)) for i in range(2)]))
    (kind, got), (_, want) = found
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
        assert g.dtype == w.dtype
    return kind


@pytest.mark.parametrize(
    "define, kind",
    [
        (lambda x: fn.full_like(x, 7.0), "GPU"),
        (lambda x: fn.full_like(x, np.float32([1, 2, 300])), "GPU"),
        (lambda x: fn.zeros_like(x, dtype=types.FLOAT16), "GPU"),
        (lambda x: fn.ones_like(x), "GPU"),
        (lambda x: fn.ones_like(x, device="cpu"), "CPU"),
        (lambda x: fn.full_like(x, 7, device="cpu"), "CPU"),
        (lambda x: fn.full(fn.reductions.max(x), shape=[9, 2]), "GPU"),
        (lambda x: fn.random.beta(x, alpha=2.0), "GPU"),
        (lambda x: fn.random.beta(x, alpha=2.0, device="cpu"), "CPU"),
        (lambda x: fn.random.uniform(x, device="cpu"), "CPU"),
        (lambda x: fn.random.normal(x, device="gpu"), "GPU"),
        (lambda x: fn.random.choice(5, x), "CPU"),
        (lambda x: fn.random.coin_flip(x), "GPU"),
        (lambda x: fn.cast_like(fn.random.uniform(shape=[4], range=[0, 200]), x, device="cpu"), "CPU"),
        (lambda x: fn.cast_like(fn.random.uniform(shape=[4], range=[0, 200]).gpu(), x), "GPU"),
        (lambda x: fn.copy(x, device="cpu"), "CPU"),
        (lambda x: fn.copy(x, device="gpu"), "GPU"),
        (lambda x: fn.shapes(x, device="cpu"), "CPU"),
    ],
)
def test_metadata(define, kind):
    assert run(define, IMAGES) == f"TensorList{kind}"


@pytest.mark.parametrize(
    "define, data",
    [
        (lambda x, start, size: fn.slice(x, start, size, axes=[0, 1]), (IMAGES, HALVES, HALVES)),
        (lambda x, m: fn.warp_affine(x, m), (IMAGES, MATRICES)),
        (lambda x, m: fn.experimental.warp_perspective(x, m), (IMAGES, SQUARES)),
        (lambda x, s: fn.reshape(x, s), (IMAGES, SHAPES)),
        (lambda x, s: fn.reinterpret(x, s, dtype=types.INT8), (IMAGES, SHAPES)),
        (lambda x, w: fn.filter(x, w[:, :2]), (IMAGES, MATRICES)),
    ],
)
def test_what_plans_the_work(define, data):
    assert run(define, *data) == "TensorListGPU"


def test_metadata_stays_where_it_is():
    """Only the type is read: nothing is copied to the GPU for it."""

    @pipeline_def(batch_size=2, device_id=0)
    def pipe():
        like = fn.external_source(source=lambda i: HALVES)
        return fn.cast_like(fn.external_source(source=lambda i: IMAGES, device="gpu"), like)

    p = pipe()
    p.build()
    assert repr(p).count("upload: ") == 1
    for got, want in zip(p.run()[0].as_cpu(), IMAGES):
        np.testing.assert_array_equal(got, want.astype("f4"))


@pytest.mark.parametrize(
    "call, i",
    [
        (lambda c, g: fn.flip(c, device="gpu"), 0),
        (lambda c, g: fn.cat(g, c), 1),
        (lambda c, g: fn.slice(c, g), 0),
        (lambda c, g: fn.normalize(c, mean=1.0, device="gpu"), 0),
        (lambda c, g: ops.Flip(device="gpu")(c), 0),
    ],
)
def test_what_lies_on_the_cpu_is_not_copied_unasked(call, i):
    """As in DALI, reported in the line of the call."""
    with Pipeline(batch_size=1, device_id=0):
        c, g = fn.external_source(name="c"), fn.external_source(name="g").gpu()
        with pytest.raises(RuntimeError, match=f'input {i}, .* is stored on incompatible device "cpu"') as caught:
            call(c, g)
    assert __file__ in str(caught.value)


def test_what_may_lie_anywhere_is_copied():
    with Pipeline(batch_size=1, device_id=0):
        c, g = fn.external_source(name="c"), fn.external_source(name="g").gpu()
        for made in (c + g, fn.copy(c, device="gpu"), fn.filter(g, c), fn.cat(g, np.zeros(3)), fn.cat(g, [1, 2])):
            assert made.device == "gpu"
