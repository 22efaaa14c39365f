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


def reference(x, saturation=1.0, image_type=None, dtype=None):
    out = np.dtype(x.dtype if dtype is None else types.to_numpy_type(dtype))
    return saturate(turned(x, 0.0, saturation), out)


TestSaturation = op_test(
    "saturation",
    reference,
    dtypes=("u1", "i2", "f2", "f4"),
    layouts=("HWC", "FHWC", "DHWC"),
    args=[
        {},
        {"saturation": 0.0, "image_type": types.BGR},
        {"saturation": per_sample(0, 3)},
        {"saturation": per_sample(0, 3), "dtype": types.UINT8},
        {"saturation": 1.5, "dtype": types.FLOAT},
    ],
    steps=1,  # sums near a half round by the precision of float32
    ulps=16,  # of float32: the matrix enlarges what rounding leaves
    errors=[
        ({"saturate": 1}, TypeError, "Did you mean 'saturation'"),
        ({"dtype": types.UINT16}, ValueError, "output type uint16 is not supported; supported: uint8, int16, int32"),
    ],
)
TestPerFrame = op_test(
    "saturation", reference, layouts=("FHWC",), args=[{"saturation": per_sample(0, 3, frames=True)}], steps=1
)
# float32 has 24 bits: that much of 2^31, enlarged by the matrix.
TestInt32 = op_test("saturation", reference, dtypes=("i4",), args=[{"saturation": 0.5}], steps=2048, share=1)
