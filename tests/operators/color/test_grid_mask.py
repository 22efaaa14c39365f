# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, run
from penstock import fn, pipeline_def, types


def reference(layout):
    def grid_mask(x, tile=100, ratio=0.5, angle=0.0, shift_x=0.0, shift_y=0.0):
        """Coordinates of each pixel in the turned grid, in float32 as is documented to be compared."""
        axis = layout.find("H")
        f = np.float32
        ys, xs = np.meshgrid(*(np.arange(n, dtype="f4") for n in x.shape[axis : axis + 2]), indexing="ij")
        by = f(1) / f(tile)
        cosine, sine = np.cos(f(angle)) * by, np.sin(f(angle)) * by
        u, v = xs * cosine - ys * sine - f(shift_x) * by, xs * sine + ys * cosine - f(shift_y) * by
        black = (u - np.floor(u) < f(ratio)) & (v - np.floor(v) < f(ratio))
        return np.where(black[..., None] if layout == "HWC" else black, x.dtype.type(0), x)

    return grid_mask


ARGS = [
    {},
    {"tile": 4},
    {"tile": 5, "ratio": 0.3},
    {"tile": 7, "ratio": 0.4, "shift_x": 2.5},
    {"tile": 7, "ratio": 0.4, "shift_x": -0.25, "shift_y": 11.5},
    {"tile": 6, "angle": 0.5},
    {"tile": 6, "angle": -1.3, "ratio": 0.7},
    {"tile": 9, "angle": 3.3, "ratio": 0.25, "shift_x": 3.0, "shift_y": -4.25},
    {"tile": 3, "ratio": 0.0},
    {"tile": 3, "ratio": 1.0},
    {"tile": 1, "ratio": 0.5},
    {"tile": per_sample(1, 20, dtype="i4")},
    {"tile": per_sample(2, 20, dtype="i4"), "ratio": per_sample(0, 1), "angle": per_sample(-7, 7)},
    {"tile": 8, "shift_x": per_sample(-9, 9), "shift_y": per_sample(-9, 9)},
    {"tile": 11, "angle": per_sample(-1, 1), "shift_x": per_sample(-9, 9), "ratio": 0.6},
]
ERRORS = [
    ({"tile": 0}, RuntimeError, "`tile` must be positive; got 0"),
    ({"tile": -3}, RuntimeError, "`tile` must be positive; got -3"),
    ({"ratio": -0.5}, RuntimeError, r"`ratio` can't be negative; it is in \[0, 1\]; got -0.5"),
    ({"til": 4}, TypeError, "Did you mean 'tile'"),
]
TestGridMask = op_test("grid_mask", reference("HWC"), args=ARGS, errors=ERRORS)
TestTypes = op_test("grid_mask", reference("HWC"), dtypes=("i2", "i4", "f4"), args=[ARGS[4], ARGS[7], ARGS[12]])
TestChannels = [op_test("grid_mask", reference("HWC"), args=[ARGS[7], ARGS[12]], channels=n) for n in (1, 2, 4, 9)]
TestGray, TestTwo, TestFour, TestNine = TestChannels
del TestChannels
OTHER = {"tile": "DALI takes the first two axes for height and width whatever they are called"}
TestPlanes = op_test("grid_mask", reference("CHW"), layouts=("CHW",), args=[ARGS[7], ARGS[12]], dali_differs=OTHER)
TestSequence = op_test("grid_mask", reference("HWC"), layouts=("FHWC",), args=[ARGS[7], ARGS[12]], dali_differs=OTHER)


@pytest.mark.parametrize(
    "dtype, shape, text",
    [("u2", (3, 3, 1), "uint16 is not supported"), ("f8", (3, 3, 1), "float64"), ("u1", (3,), "1 dimensions")],
)
def test_other_inputs(dtype, shape, text):
    with pytest.raises(RuntimeError, match=text):
        run("grid_mask", [np.zeros(shape, dtype)], Case(dtype, "", {}), {})


def test_a_layout_without_height_and_width():
    with pytest.raises(RuntimeError, match="the layout 'XY' has no height and width"):
        run("grid_mask", [np.zeros((3, 3), "u1")], Case("u1", "XY", {}), {})


def test_a_ratio_above_one():
    """Is the same as 1, as in DALI."""

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.grid_mask(types.Constant(np.ones((5, 7, 1), np.uint8), layout="HWC"), tile=3, ratio=1.5)

    assert not pipe().run()[0].as_array().any()
