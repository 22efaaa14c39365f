# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample, saturate
from penstock import types


def reference(x, brightness=1.0, brightness_shift=0.0, dtype=None):
    out = x.dtype if dtype is None else types.to_numpy_type(dtype)
    full = {"u": 255, "i": 32767, "f": 1.0}[np.dtype(out).kind]
    return saturate(brightness_shift * full + brightness * x.astype("f8"), out)


TestBrightness = op_test(
    "brightness",
    reference,
    dtypes=("u1", "i2", "f4"),
    layouts=("HWC", "FHWC", "DHWC"),
    args=[
        {},
        {"brightness": 1.7},
        {"brightness": per_sample(0, 3)},
        {"brightness_shift": -0.1, "dtype": types.FLOAT},
        {"brightness": per_sample(0, 3), "brightness_shift": per_sample(-1, 1)},
    ],
    steps=1,  # products near a half round by the precision of float32
    errors=[
        ({"brightnes": 1}, TypeError, "Did you mean 'brightness'"),
        ({"brightness": "a"}, TypeError, "takes a number"),
    ],
)
TestPerFrame = op_test(
    "brightness", reference, layouts=("FHWC",), args=[{"brightness": per_sample(0, 3, frames=True)}], steps=1
)
