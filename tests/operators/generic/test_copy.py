# SPDX-License-Identifier: Apache-2.0
from harness import op_test

TestCopy = op_test(
    "copy",
    lambda x: x,
    dtypes=("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?"),
    layouts=("HWC", "FHWC", "DHWC", "CHW", ""),
    errors=[({"copies": 1}, TypeError, "unexpected argument 'copies'")],
)
