# SPDX-License-Identifier: Apache-2.0
import numpy as np
from signals import signals

from harness import op_test, per_sample, saturate
from penstock import types


def reference(x, preemph_coeff=0.97, border="clamp", dtype=types.FLOAT):
    if not x.size:
        return x.astype(types.to_numpy_type(dtype))
    x, c = x.astype("f8"), float(np.float32(preemph_coeff))
    before = {"clamp": x[0], "zero": 0, "reflect": x[1] if len(x) > 1 else 0}[border]
    return saturate(x - c * np.concatenate([[before], x[:-1]]), types.to_numpy_type(dtype))


TestBorders = op_test(
    "preemphasis_filter",
    reference,
    dtypes=("f4", "i2"),
    layouts=("",),
    args=[{}, {"border": "zero"}, {"border": "reflect"}, {"preemph_coeff": per_sample(0.1, 0.9)}],
    make_input=signals(0, 2, 3, 17, 1025, 4000),
    errors=[
        ({"border": "wrap"}, ValueError, "border takes 'zero', 'clamp', 'reflect'"),
        ({"dtype": types.FLOAT16}, ValueError, "output type float16"),
    ],
)
TestTypes = op_test(
    "preemphasis_filter",
    reference,
    dtypes=("u1", "i1", "u2", "u4", "i4", "u8", "i8", "f8"),
    layouts=("",),
    args=[{}],
    make_input=signals(1, 9, 2100, scale=0.4),
)
TestOutputTypes = op_test(
    "preemphasis_filter",
    reference,
    dtypes=("f4",),
    layouts=("",),
    args=[{"dtype": t} for t in (types.INT8, types.UINT8, types.INT16, types.UINT16, types.INT32, types.FLOAT64)],
    make_input=signals(1, 9, 2100, scale=100),
    steps=1,
    share=0.01,
)
