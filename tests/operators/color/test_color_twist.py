# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, per_sample, run, saturate
from penstock import types

RGB_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])


def turned(x, hue, saturation):
    """RGB pixels (..., 3) with I and Q as a complex number that is turned and stretched, in float64."""
    y, i, q = np.moveaxis(x.astype("f8") @ RGB_TO_YIQ.T, -1, 0)
    chroma = saturation * (i + 1j * q) * np.exp(-1j * np.radians(np.float64(hue)))
    return np.linalg.solve(RGB_TO_YIQ, np.stack([y, chroma.real, chroma.imag], -1)[..., None])[..., 0]


def reference(x, hue=0.0, saturation=1.0, contrast=1.0, brightness=1.0, image_type=None, dtype=None):
    out = np.dtype(x.dtype if dtype is None else types.to_numpy_type(dtype))
    center = 0.5 if x.dtype.kind == "f" else 128
    return saturate(brightness * (center + contrast * (turned(x, hue, saturation) - center)), out)


TestColorTwist = op_test(
    "color_twist",
    reference,
    dtypes=("u1", "i2", "f2", "f4"),
    layouts=("HWC", "FHWC", "DHWC"),
    args=[
        {},
        {"hue": 90.0, "contrast": 0.5},
        {"hue": per_sample(-200, 400), "saturation": per_sample(0, 2), "image_type": types.BGR},
        {"contrast": per_sample(0, 2), "brightness": per_sample(0, 2)},
        {"hue": per_sample(0, 99), "contrast": per_sample(0, 2), "brightness": per_sample(0, 2), "dtype": types.FLOAT},
        {"brightness": 0.5, "dtype": types.UINT8},
    ],
    steps=1,  # sums near a half round by the precision of float32
    ulps=16,  # of float32: the matrix enlarges what rounding leaves
    errors=[
        ({"contrasts": 1}, TypeError, "Did you mean 'contrast'"),
        ({"dtype": types.UINT16}, ValueError, "output type uint16 is not supported; supported: uint8, int16, int32"),
    ],
)
TestPerFrame = op_test(
    "color_twist",
    reference,
    layouts=("FHWC",),
    args=[{"hue": per_sample(0, 360, frames=True), "contrast": per_sample(0, 2, frames=True)}],
    steps=1,
)
# float32 has 24 bits: that much of 2^31, enlarged by the matrix.
TestInt32 = op_test(
    "color_twist", reference, dtypes=("i4",), args=[{"contrast": 0.5, "saturation": 0.3}], steps=2048, share=1
)


@pytest.mark.parametrize("channels", [1, 4])
@pytest.mark.parametrize("name", ["hue", "saturation", "hsv", "color_twist"])
def test_needs_three_channels(name, channels):
    with pytest.raises(RuntimeError, match=f"3 channels needed, got {channels}"):
        run(name, [np.zeros((2, 3, channels), "u1")], Case("u1", "HWC", {}), {})


@pytest.mark.parametrize("name", ["hue", "saturation", "hsv", "color_twist", "contrast"])
def test_refuses_other_types(name):
    with pytest.raises(RuntimeError, match="input type uint16 is not supported; supported: uint8, int16, int32, "):
        run(name, [np.zeros((2, 3, 3), "u2")], Case("u2", "HWC", {}), {})
