# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, saturate
from penstock import fn, pipeline_def


def reference(x, like):
    return saturate(x, like.dtype)


def like(dtype):
    return lambda rng, case: [[np.zeros((i, 2), dtype) for i in range(5)]]


TestToUint8 = op_test("cast_like", reference, dtypes=("i2", "f4"), layouts=("HWC", ""), extra_inputs=like("u1"))
TestToFloat = op_test("cast_like", reference, dtypes=("u1", "i4", "f8"), extra_inputs=like("f4"))
TestSequences = op_test("cast_like", reference, dtypes=("u1",), layouts=("FHWC", "FDHWC"), extra_inputs=like("i2"))


@pytest.mark.parametrize("layout, like_layout", [("HWC", "FDHWC"), ("FHWC", "HWC"), ("FHWC", "FHWC"), ("", "FHWC")])
def test_only_the_type_of_the_second_input_counts(layout, like_layout):
    """Its number of frames is irrelevant."""
    shapes = {"HWC": (4, 6, 3), "FHWC": (2, 4, 6, 3), "FDHWC": (3, 1, 2, 2, 3), "": (4, 6, 3)}
    x, like = np.full(shapes[layout], 7, "u1"), np.zeros(shapes[like_layout], "f4")

    @pipeline_def(batch_size=2)
    def pipe():
        first = fn.external_source(lambda i: [x, x[:, :1]], layout=layout)
        return fn.cast_like(first, fn.external_source(lambda i: [like, like[:1]], layout=like_layout))

    out = pipe().run()[0]
    assert out.layout() == layout
    np.testing.assert_array_equal(out.at(0), x.astype("f4"), strict=True)
    np.testing.assert_array_equal(out.at(1), x[:, :1].astype("f4"), strict=True)
