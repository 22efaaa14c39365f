# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy.ndimage import median_filter

from harness import op_test, per_sample
from penstock import fn, pipeline_def


def medians(first):
    """The reference for images whose height is axis `first`."""

    def reference(x, window_size=3):
        w, h = np.broadcast_to(window_size, 2)
        size = [1] * x.ndim
        size[first : first + 2] = h, w
        return median_filter(x, size, mode="nearest") if x.size else x

    return reference


def odd(lo, hi, shape=()):
    column = per_sample(lo // 2, hi // 2 + 1, shape, "i4")
    return type(column)(lambda rng, s: 2 * column.make(rng, s) + 1, column.shape, False, f"odd({lo},{hi})")


GPU_ONLY = {"dali_differs": {"-": "DALI has it on the GPU only"}}
TestImages = op_test(
    "experimental.median_blur",
    medians(0),
    dtypes=("u1", "u2", "f4"),
    args=[
        {},
        {"window_size": [1, 3]},
        {"window_size": 5},
        {"window_size": [5, 3]},
        {"window_size": [7, 1]},
        {"window_size": [7, 9]},
        {"window_size": odd(1, 9, (2,))},
        {"window_size": 1},
    ],
    errors=[
        ({"window_size": 4}, RuntimeError, r"`window_size` must be odd and positive, got \[4, 4\]"),
        ({"window_size": [3, 3, 3]}, RuntimeError, "`window_size` has 3 values"),
        ({"window_size": 301}, RuntimeError, "too large"),
    ],
    **GPU_ONLY,
)
TestLarge = op_test(
    "experimental.median_blur", medians(0), args=[{"window_size": 17}, {"window_size": [3, 85]}], **GPU_ONLY
)
TestPlanes = op_test("experimental.median_blur", medians(1), layouts=("CHW", "FCHW"), **GPU_ONLY)
TestGray = op_test("experimental.median_blur", medians(0), layouts=("HW", "FHW"), **GPU_ONLY)
TestSequences = op_test(
    "experimental.median_blur", medians(0), layouts=("FHWC",), args=[{"window_size": [5, 1]}], **GPU_ONLY
)


def test_negative_floats_and_infinities_are_ordered():
    x = np.float32([[-1, -np.inf, 3, np.inf, -5, 0, -0.5, 7, 2, 1, -2]])

    @pipeline_def(batch_size=1)
    def pipe():
        return fn.experimental.median_blur(fn.external_source(source=lambda i: [x], layout="HW"), window_size=[7, 1])

    np.testing.assert_array_equal(pipe().run()[0].at(0), median_filter(x, (1, 7), mode="nearest"))


def test_types_that_are_refused():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.experimental.median_blur(fn.external_source(source=lambda i: [np.zeros((3, 3), "i4")], layout="HW"))

    with pytest.raises(RuntimeError, match="input type int32 is not supported; supported: uint8, uint16, float32"):
        pipe().run()
