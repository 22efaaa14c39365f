# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test
from penstock import types


def reference(x, dtype=None):
    return np.ones_like(x, x.dtype if dtype is None else types.to_numpy_type(dtype))


TestLike = op_test(
    "ones_like",
    reference,
    ("u1", "i2", "f4", "?"),
    ("HWC", "FHWC", ""),
    args=[{}, {"dtype": types.FLOAT16}, {"dtype": types.INT64}],
)
