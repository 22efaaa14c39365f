# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample, saturate
from penstock import types

CENTER = {"uint8": 128, "int16": 2**14, "int32": 2**30, "float32": 0.5}


def reference(x, contrast=1.0, contrast_center=None, dtype=None):
    center = CENTER[x.dtype.name] if contrast_center is None else contrast_center
    out = x.dtype if dtype is None else types.to_numpy_type(dtype)
    return saturate(center + contrast * (x.astype("f8") - center), np.dtype(out))


TestContrast = op_test(
    "contrast",
    reference,
    dtypes=("u1", "i2", "f4"),
    layouts=("HWC", "FHWC", "DHWC"),
    args=[
        {},
        {"contrast": 0.0},
        {"contrast": 1.7},
        {"contrast": per_sample(0, 3)},
        {"contrast": 0.5, "contrast_center": 10.0, "dtype": types.INT16},
        {"contrast": per_sample(0, 3), "contrast_center": per_sample(0, 200), "dtype": types.FLOAT},
    ],
    steps=1,  # products near a half round by the precision of float32
    errors=[
        ({"contrat": 1}, TypeError, "Did you mean 'contrast'"),
        (
            {"dtype": types.UINT16},
            ValueError,
            "output type uint16 is not supported; supported: uint8, int16, int32, float32",
        ),
    ],
)
TestPerFrame = op_test(
    "contrast", reference, layouts=("FHWC",), args=[{"contrast": per_sample(0, 3, frames=True)}], steps=1
)
# float32 has 24 bits: that much of 2^31.
TestInt32 = op_test(
    "contrast", reference, dtypes=("i4",), args=[{"contrast": 0.0}, {"contrast": 0.7}], steps=512, share=1
)
TestToUint8 = op_test(
    "contrast", reference, dtypes=("i4", "f4"), args=[{"contrast": 0.7, "dtype": types.UINT8}], steps=1
)
