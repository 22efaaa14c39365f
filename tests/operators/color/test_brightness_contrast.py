# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, run, saturate
from penstock import types

CENTER = {"uint8": 128, "int16": 2**14, "int32": 2**30, "float32": 0.5}
FULL = {"uint8": 255, "int16": 2**15 - 1, "int32": 2**31 - 1, "float32": 1.0}


def reference(x, brightness=1.0, brightness_shift=0.0, contrast=1.0, contrast_center=None, dtype=None):
    center = CENTER[x.dtype.name] if contrast_center is None else contrast_center
    out = np.dtype(x.dtype if dtype is None else types.to_numpy_type(dtype))
    stretched = center + contrast * (x.astype("f8") - center)
    return saturate(brightness_shift * FULL[out.name] + brightness * stretched, out)


TestBrightnessContrast = op_test(
    "brightness_contrast",
    reference,
    dtypes=("u1", "i2", "f4"),
    layouts=("HWC", "FHWC", "DHWC"),
    args=[
        {},
        {"brightness": 1.3, "contrast": 0.6},
        {"brightness": per_sample(0, 3), "contrast": per_sample(0, 2)},
        {"brightness_shift": 0.25, "contrast": 0.0, "dtype": types.INT16},
        {
            "brightness": per_sample(0, 2),
            "brightness_shift": per_sample(-1, 1),
            "contrast": per_sample(0, 2),
            "contrast_center": per_sample(0, 1),
            "dtype": types.FLOAT,
        },
    ],
    steps=1,  # products near a half round by the precision of float32
    ulps=8,
    errors=[
        ({"contrst": 1}, TypeError, "Did you mean 'contrast'"),
        (
            {"dtype": types.FLOAT16},
            ValueError,
            "output type float16 is not supported; supported: uint8, int16, int32, float32",
        ),
    ],
)
TestPerFrame = op_test(
    "brightness_contrast",
    reference,
    layouts=("FHWC",),
    args=[{"brightness": per_sample(0, 3, frames=True), "contrast": per_sample(0, 2, frames=True)}],
    steps=1,
)


@pytest.mark.parametrize("size", [2047, 2048, 2049, 4096, 10001])
@pytest.mark.parametrize("brightness, contrast", [(1.0, 1.0), (1.7, 0.3), (0.4, 2.5), (-1.0, 1.0), (3.0, -0.5)])
def test_large_images_go_through_a_table(size, brightness, contrast):
    x = np.resize(np.random.default_rng(0).permutation(np.arange(256)).astype("u1"), (size, 1, 1))
    kwargs = {"brightness": brightness, "contrast": contrast, "brightness_shift": 0.1}
    ((large,),) = run("brightness_contrast", [x], Case("u1", "HWC", kwargs), {})
    ((small,),) = run("brightness_contrast", [x[:256]], Case("u1", "HWC", kwargs), {})
    np.testing.assert_array_equal(large, np.resize(small, large.shape))
    assert np.abs(large.astype("i4") - reference(x, **kwargs)).max() <= 1
