# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, saturate


def reference(x, like):
    return saturate(x, like.dtype)


def like(dtype):
    return lambda rng, case: [[np.zeros((i, 2), dtype) for i in range(5)]]


TestToUint8 = op_test("cast_like", reference, dtypes=("i2", "f4"), layouts=("HWC", ""), extra_inputs=like("u1"))
TestToFloat = op_test("cast_like", reference, dtypes=("u1", "i4", "f8"), extra_inputs=like("f4"))
