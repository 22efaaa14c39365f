# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from scipy.ndimage import correlate1d

from harness import full_shape, op_test, per_sample, random_array, saturate
from penstock import fn, pipeline_def, types


def window(sigma, size):
    size = int(size) or 2 * int(np.ceil(np.float32(3) * np.float32(sigma))) + 1
    radius = (size - 1) // 2
    sigma = float(sigma) or (radius - 1) * 0.3 + 0.8
    w = np.exp(-((np.arange(size) - radius) ** 2) / (2 * sigma**2))
    return w / w.sum()


def blurred(space):
    """The reference for inputs whose axes of space are `space`."""

    def reference(x, sigma=0.0, window_size=0, dtype=None):
        out = x.dtype if dtype is None else types.to_numpy_type(dtype)
        y = x.astype("f8")
        if x.size:
            sigma, window_size = np.broadcast_to(sigma, len(space)), np.broadcast_to(window_size, len(space))
            for axis, s, w in zip(space, sigma, window_size):
                y = correlate1d(y, window(s, w), axis, mode="mirror")
        return saturate(y, out)

    return reference


ARGS = [
    {"sigma": 1.0},
    {"sigma": 0.4},
    {"sigma": [2.5, 0.7]},
    {"window_size": 5},
    {"window_size": [1, 9]},
    {"sigma": [0.0, 1.3], "window_size": [3, 0]},
    {"sigma": 1.1, "window_size": 7, "dtype": types.FLOAT},
    {"sigma": per_sample(0.2, 4)},
    {"sigma": per_sample(0.2, 4, (2,))},
    {"sigma": 8.0},
]
SIZES = ((5, 4), (1, 1), (33, 17), (8, 67))  # DALI crashes on empty samples
HALF = {"float16-HWC-sigma=1.5,dtype=FLOAT": "DALI rounds sums to float16 although the output is float32"}
EXACT = {"steps": 1, "share": 0.01, "ulps": 8, "sizes": SIZES}
TestImages = op_test("gaussian_blur", blurred((0, 1)), dtypes=("u1", "f4"), args=ARGS, **EXACT)
TestTypes = op_test(
    "gaussian_blur",
    blurred((0, 1)),
    dtypes=("u2", "i1", "i2", "f2"),
    args=[{"sigma": 1.5}, {"sigma": 1.5, "dtype": types.FLOAT}],
    dali_differs=HALF,
    **EXACT,
)
TestPlanes = op_test("gaussian_blur", blurred((1, 2)), layouts=("CHW", "FCHW"), args=ARGS[:4], **EXACT)
TestGray = op_test("gaussian_blur", blurred((0, 1)), layouts=("HW", "FHW"), args=ARGS[:4], **EXACT)
TestManyChannels = op_test("gaussian_blur", blurred((0, 1)), args=ARGS[:4], channels=5, **EXACT)
TestVolumes = op_test(
    "gaussian_blur",
    blurred((0, 1, 2)),
    dtypes=("u1", "f4"),
    layouts=("DHWC", "FDHWC"),
    args=[{"sigma": 0.8}, {"sigma": [2.0, 0.5, 1.0]}, {"window_size": [3, 5, 1]}],
    **EXACT,
)
TestVolumesOfPlanes = op_test(
    "gaussian_blur", blurred((1, 2, 3)), dtypes=("u1",), layouts=("CDHW",), args=[{"sigma": 0.8}], **EXACT
)


def lines(rng, case):
    return [random_array(rng, (n, 3)[: len(case.layout) or 1], case.dtype) for n in (17, 1, 90, 5)]


TestLines = op_test(
    "gaussian_blur",
    blurred((0,)),
    layouts=("W", ""),
    make_input=lines,
    args=[{"sigma": 2.0}, {"window_size": 3}],
    **EXACT,
)
TestPerFrame = op_test(
    "gaussian_blur", blurred((0, 1)), layouts=("FHWC",), args=[{"sigma": per_sample(0.3, 3, frames=True)}], **EXACT
)


def tall(rng, case):
    """Smaller than the window along one axis or both."""
    return [random_array(rng, full_shape("HWC", hw, 3, 0), case.dtype) for hw in ((2, 40), (40, 2), (3, 3), (1, 7))]


TestSmallerThanTheWindow = op_test(
    "gaussian_blur",
    blurred((0, 1)),
    args=[{"sigma": 5.0}],
    make_input=tall,
    errors=[
        ({"sigma": 0.0}, RuntimeError, "neither `sigma` nor `window_size` is given"),
        ({"sigma": -1.0}, RuntimeError, "`sigma` must have non-negative values"),
        ({"window_size": 4}, RuntimeError, "`window_size` should have odd length"),
        ({"sigma": [1.0, 2.0, 3.0]}, RuntimeError, "`sigma` has 3 values; it takes one, or one per axis of space"),
        ({"dtype": types.INT16}, RuntimeError, "output type int16 is not supported for an input of type uint8"),
        ({"sigma": float("nan")}, RuntimeError, "must have non-negative values, got"),
        ({"sigma": 1e9}, RuntimeError, "too large"),
    ],
    **EXACT,
)


@pytest.mark.parametrize(
    "layout, text", [("HCW", "channels go first or last"), ("XYZW", "has 4 axes of space"), ("C", "has 0 axes")]
)
def test_layouts_that_are_refused(layout, text):
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.gaussian_blur(types.Constant(np.zeros((3,) * len(layout), "u1"), layout=layout), sigma=1.0)

    with pytest.raises(RuntimeError, match=text):
        pipe().run()


@pytest.mark.parametrize("dtype", ["u4", "u8", "i4", "i8", "f8"])
def test_wide_types_have_the_precision_of_float32(dtype):
    x = np.random.default_rng(1).integers(0, 2**30, (20, 30)).astype(dtype)

    @pipeline_def(batch_size=1)
    def pipe():
        return fn.gaussian_blur(fn.external_source(source=lambda i: [x], layout="HW"), sigma=1.0)

    got = pipe().run()[0].at(0)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got, blurred((0, 1))(x, 1.0, dtype=types.FLOAT), rtol=1e-6)


def test_empty_samples():
    @pipeline_def(batch_size=1)
    def pipe(layout, shape):
        return fn.gaussian_blur(types.Constant(np.zeros(shape, "u1"), layout=layout), sigma=1.0)

    for layout, shape in (
        ("HWC", (0, 4, 3)),
        ("HWC", (4, 0, 3)),
        ("HWC", (4, 4, 0)),
        ("DHW", (0, 3, 3)),
    ):
        assert pipe(layout, shape).run()[0].at(0).shape == shape
