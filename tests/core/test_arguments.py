# SPDX-License-Identifier: Apache-2.0
"""Constants and data that are invalid as arguments."""

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types

CLIPS = [np.zeros((2, 4, 5, 3), "u1"), np.zeros((3, 4, 5, 3), "u1")]


def run(operator, layout="FHWC", data=None, data_layout=None, **kwargs):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        more = {k: fn.external_source(source=lambda i, v=v: v, layout=data_layout) for k, v in (data or {}).items()}
        return operator(fn.external_source(source=lambda: CLIPS, layout=layout), **more, **kwargs)

    return pipe().run()[0]


@pytest.mark.parametrize(
    "operator, kwargs, error, text",
    [
        (
            fn.flip,
            {"horizontal": 2**31},
            ValueError,
            "fn.flip: argument 'horizontal' takes integers of 32 bits; got 214",
        ),
        (fn.one_hot, {"num_classes": 2**63}, ValueError, "'num_classes' takes integers of 32 bits"),
        (fn.pad, {"axes": [0, 2**32]}, ValueError, "'axes' takes integers of 32 bits; got 4294967296"),
        (fn.jitter, {"seed": 2**63}, ValueError, "'seed' takes integers of 64 bits"),
        (fn.flip, {"horizontal": float("nan")}, TypeError, "'horizontal' takes an integer"),
        (fn.flip, {"horizontal": float("inf")}, TypeError, "'horizontal' takes an integer, got inf"),
        (fn.cast, {"dtype": 999}, TypeError, "fn.cast: .*999 is not a type that is known"),
        (fn.cast, {"dtype": 1j}, TypeError, "fn.cast: .*1j is not a type that is known"),
        (fn.cast, {"dtype": np.zeros(3)}, TypeError, "fn.cast: .*is not a type that is known"),
        (fn.resize, {"size": 3, "interp_type": 999}, TypeError, "'interp_type' takes a DALIInterpType.*, got 999"),
        (fn.resize, {"size": 3, "interp_type": types.FLOAT}, TypeError, "'interp_type' takes a DALIInterpType"),
        (fn.crop, {"crop": [[1, 2], [3]]}, TypeError, r"'crop' takes a number or a list of them, got \[1, 2\]"),
        (fn.normalize, {"mean": [[1, 2], [3]]}, ValueError, "lists of different lengths"),
    ],
)
def test_constants(operator, kwargs, error, text):
    with pytest.raises(error, match=text):
        run(operator, **kwargs)


@pytest.mark.parametrize("value, shown", [(2**32 + 1, "4294967297"), (-(2**31) - 1, "-2147483649")])
@pytest.mark.parametrize("good_batches", [0, 6])
def test_data_beyond_32_bits(value, shown, good_batches):
    """In the first batch, and in later batches with a cached plan."""

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def pipe():
        data = fn.external_source(lambda i: [np.array(1 if i < good_batches else value, "i8")] * 2)
        return fn.flip(fn.external_source(source=lambda: CLIPS, layout="FHWC"), horizontal=data)

    p = pipe()
    for _ in range(good_batches):
        np.testing.assert_array_equal(p.run()[0].at(1), CLIPS[1][:, :, ::-1])
    with pytest.raises(ValueError, match=f"'horizontal' takes integers of 32 bits; got {shown}"):
        p.run()


def test_seeds_have_64_bits():
    assert run(fn.noise.gaussian, seed=2**63 - 1, stddev=1.0).shape() == [x.shape for x in CLIPS]


@pytest.mark.parametrize(
    "shapes, text",
    [
        (((2, 2), (3, 2)), r"'brightness' takes one value per frame; got frames of shape \(2,\)"),
        (((2, 0), (3, 0)), r"'brightness' takes one value per frame; got frames of shape \(0,\)"),
        (((2, 1), (3, 2)), r"'brightness' needs the same number of values for every frame; got shapes \[\[2, 1\], "),
    ],
)
def test_data_per_frame(shapes, text):
    with pytest.raises(PipelineError, match=text):
        run(fn.brightness, data={"brightness": [np.ones(s, "f4") for s in shapes]}, data_layout="FN")


def test_no_values_per_frame():
    """Empty vectors are rejected by the operator, not by NumPy."""
    with pytest.raises(PipelineError, match=r"(?s)fn.warp_affine.*give a `matrix`, or matrices as the second input"):
        run(fn.warp_affine, data={"matrix": [np.ones((2, 0), "f4"), np.ones((3, 0), "f4")]}, data_layout="FN")
