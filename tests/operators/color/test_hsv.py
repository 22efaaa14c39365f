# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample, saturate
from penstock import fn, pipeline_def, types

RGB_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])


def turned(x, hue, saturation):
    """RGB pixels (..., 3) with I and Q as a complex number that is turned and stretched, in float64."""
    y, i, q = np.moveaxis(x.astype("f8") @ RGB_TO_YIQ.T, -1, 0)
    chroma = saturation * (i + 1j * q) * np.exp(-1j * np.radians(np.float64(hue)))
    return np.linalg.solve(RGB_TO_YIQ, np.stack([y, chroma.real, chroma.imag], -1)[..., None])[..., 0]


def reference(x, hue=0.0, saturation=1.0, value=1.0, dtype=types.UINT8):
    out = np.dtype(types.to_numpy_type(dtype))
    return saturate(value * turned(x, hue, saturation), out)


TestHsv = op_test(
    "hsv",
    reference,
    dtypes=("u1", "i2", "f2", "f4"),
    layouts=("HWC", "FHWC", "DHWC"),
    args=[
        {},
        {"hue": 90.0, "value": 0.5},
        {"hue": per_sample(-200, 400), "saturation": per_sample(0, 2), "value": per_sample(0, 2)},
        {"hue": per_sample(-200, 400), "value": per_sample(0, 2), "dtype": types.INT16},
        {"saturation": 1.5, "dtype": types.FLOAT},
    ],
    steps=1,  # sums near a half round by the precision of float32
    ulps=16,  # of float32: the matrix enlarges what rounding leaves
    errors=[
        ({"values": 1}, TypeError, "Did you mean 'value'"),
        ({"dtype": types.UINT16}, ValueError, "output type uint16 is not supported; supported: uint8, int16, int32"),
    ],
)
TestPerFrame = op_test(
    "hsv",
    reference,
    layouts=("FHWC",),
    args=[{"hue": per_sample(0, 360, frames=True), "value": per_sample(0, 2, frames=True)}],
    steps=1,
)
# float32 has 24 bits: that much of 2^31, enlarged by the matrix.
TestInt32 = op_test("hsv", reference, dtypes=("i4",), args=[{"hue": 30.0, "dtype": types.INT32}], steps=2048, share=1)


def test_a_channel_of_the_result_is_made_of_all_channels():
    """Where only one is needed, the operators before still make all."""
    x = np.random.default_rng(0).integers(0, 256, (3, 4, 5)).astype("f4")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def narrow():
        planes = fn.transpose(fn.external_source([x[None]], layout="CHW"), perm=[1, 2, 0])
        return fn.slice(fn.hsv(planes, saturation=0.3, dtype=types.FLOAT), start=[1], end=[2], axes=[2])

    expected = reference(x.transpose(1, 2, 0), saturation=0.3, dtype=np.float32)
    np.testing.assert_allclose(narrow().run()[0].as_array()[0], expected[..., 1:2], rtol=1e-5, atol=1e-3)
