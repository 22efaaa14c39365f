# SPDX-License-Identifier: Apache-2.0
"""`dtype=types.NO_TYPE` is DALI's name for an omitted type."""

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

GIVEN = {
    "brightness": {},
    "crop": {"crop": (2, 2)},
    "gaussian_blur": {"sigma": 1.0},
    "reductions.mean": {},
    "reductions.sum": {},
    "resize": {"size": (3, 3)},
    "resize_crop_mirror": {"size": (3, 3), "crop": (2, 2)},
    "rotate": {"angle": 30.0},
    "slice": {"start": [0, 0], "end": [2, 2], "axes": [0, 1]},
    "tensor_resize": {"sizes": [3, 3, 3]},
}


def outcome(name, x, **kwargs):
    @pipeline_def(batch_size=1)
    def pipe():
        call = fn
        for part in name.split("."):
            call = getattr(call, part)
        return call(fn.external_source(lambda i: [x], layout="HWC"), **kwargs)

    return np.array(pipe().run()[0].at(0))


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_as_if_not_given(name, dtype):
    x = np.arange(4 * 6 * 3).reshape(4, 6, 3).astype(dtype)
    want = outcome(name, x, **GIVEN[name])
    np.testing.assert_array_equal(outcome(name, x, dtype=types.NO_TYPE, **GIVEN[name]), want, strict=True)


def test_hsv_takes_the_type_of_the_input():
    """Its default is a different type."""
    x = np.full((2, 2, 3), 0.25, "f4")
    assert outcome("hsv", x).dtype == np.uint8
    assert outcome("hsv", x, dtype=types.NO_TYPE).dtype == np.float32


def test_no_type_to_convert_to():
    with pytest.raises(TypeError, match=r"NO_TYPE is not a numeric type.*give one"):
        outcome("cast", np.zeros((2, 2, 3), "u1"), dtype=types.NO_TYPE)
