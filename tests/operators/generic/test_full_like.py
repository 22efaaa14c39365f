# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, saturate
from penstock import fn, pipeline_def, types


def reference(x, value):
    return np.broadcast_to(saturate(value, x.dtype), x.shape).copy()


def values(*shape):
    return lambda rng, case: [[rng.uniform(-50, 400, shape).astype("f4") for _ in range(5)]]


DTYPES = ("u1", "i2", "i4", "f4")
TestScalar = op_test("full_like", reference, DTYPES, ("HWC", "FHWC", ""), extra_inputs=values())
TestChannels = op_test("full_like", reference, DTYPES, ("HWC", "FHWC"), extra_inputs=values(1, 3))
TestSame = op_test(
    "full_like",
    reference,
    ("u1", "f4"),
    make_input=lambda rng, case: [np.zeros((4, 6, 2), case.dtype) for _ in range(5)],
    extra_inputs=values(4, 6, 2),
)


def test_values_that_do_not_fit():
    with pytest.raises(RuntimeError, match=r"values of shape \[2\] can't fill an array of shape \[3\]"):
        pipeline_def(lambda: fn.full_like(types.Constant([1, 2, 3]), types.Constant([1, 2])), batch_size=1)().run()
