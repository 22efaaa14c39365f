# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from encoded_images import ANY_DATA, GRAY, decoded, jpegs, mixed, size
from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, dtype=types.INT64, adjust_orientation=True, image_type=0):
    channels = {GRAY: 1, ANY_DATA: decoded(x, ANY_DATA).shape[2]}.get(int(image_type), 3)
    kind = {types.INT64: "i8", types.INT32: "i4", types.UINT32: "u4", types.FLOAT: "f4"}[dtype]
    return np.array([*size(x, adjust_orientation), channels], kind)


TestPeekImageShape = op_test(
    "peek_image_shape",
    reference,
    layouts=("",),
    args=[
        {},
        {"adjust_orientation": False},
        {"image_type": types.GRAY},
        {"image_type": types.ANY_DATA},
        {"dtype": types.INT32},
        {"dtype": types.FLOAT},
    ],
    make_input=lambda rng, case: jpegs() + mixed(),
    errors=[({"dtype": types.UINT8}, ValueError, "dtype=UINT8 is not supported; supported: INT32")],
)


def test_bad_file():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.peek_image_shape(fn.external_source(source=lambda i: [np.zeros(5, "u1")]))

    with pytest.raises(RuntimeError, match="not an image that can be decoded"):
        pipe().run()
