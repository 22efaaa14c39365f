# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample, saturate
from penstock import types

RGB_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])


def turned(x, hue, saturation):
    """RGB pixels (..., 3) with I and Q as a complex number that is turned and stretched, in float64."""
    y, i, q = np.moveaxis(x.astype("f8") @ RGB_TO_YIQ.T, -1, 0)
    chroma = saturation * (i + 1j * q) * np.exp(-1j * np.radians(np.float64(hue)))
    return np.linalg.solve(RGB_TO_YIQ, np.stack([y, chroma.real, chroma.imag], -1)[..., None])[..., 0]


def reference(x, hue=0.0, image_type=None, dtype=None):
    out = np.dtype(x.dtype if dtype is None else types.to_numpy_type(dtype))
    return saturate(turned(x, hue, 1.0), out)


TestHue = op_test(
    "hue",
    reference,
    dtypes=("u1", "i2", "f2", "f4"),
    layouts=("HWC", "FHWC", "DHWC"),
    args=[
        {},
        {"hue": 90.0, "image_type": types.BGR},
        {"hue": per_sample(-200, 400)},
        {"hue": per_sample(-200, 400), "dtype": types.UINT8},
        {"hue": 30.0, "dtype": types.FLOAT},
    ],
    steps=1,  # sums near a half round by the precision of float32
    ulps=16,  # of float32: the matrix enlarges what rounding leaves
    errors=[
        ({"hew": 1}, TypeError, "Did you mean 'hue'"),
        ({"dtype": types.UINT16}, ValueError, "output type uint16 is not supported; supported: uint8, int16, int32"),
    ],
)
TestPerFrame = op_test("hue", reference, layouts=("FHWC",), args=[{"hue": per_sample(0, 360, frames=True)}], steps=1)
# float32 has 24 bits: that much of 2^31, enlarged by the matrix.
TestInt32 = op_test(
    "hue", reference, dtypes=("i4",), args=[{"hue": 30.0}, {"hue": 30.0, "dtype": types.UINT8}], steps=2048, share=1
)
