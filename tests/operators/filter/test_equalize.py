# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def channel(x):
    """From the definition, in float64."""
    if x.size == 0 or x.min() == x.max():
        return x
    values, counts = np.unique(x, return_counts=True)
    below = np.cumsum(counts) - counts[0]
    return np.round(255 * below / below[-1])[np.searchsorted(values, x)].astype("u1")


def planes_first(x):
    return np.stack([channel(c) for c in x])


def pixels_last(x):
    return np.stack([channel(x[..., c]) for c in range(x.shape[-1])], -1)


def narrow(rng, case):
    """Values that are not spread evenly, of all numbers of channels that are handled apart."""
    return [
        (rng.normal(90, 25, (h, w, 3)).clip(0, 255)).astype("u1") for h, w in ((40, 33), (1, 5), (17, 64), (64, 65))
    ]


TestEqualize = op_test("equalize", channel, layouts=("HW", "FHW"), steps=1, share=0.001)
TestPlanes = op_test("equalize", planes_first, layouts=("CHW", "FCHW"), steps=1, share=0.001)
TestPixels = op_test("equalize", pixels_last, layouts=("HWC", "FHWC"), steps=1, share=0.001)
TestPhotographs = op_test("equalize", pixels_last, layouts=("HWC",), steps=1, share=0.001, make_input=narrow)
TestChannels = [
    op_test("equalize", pixels_last, layouts=("HWC",), steps=1, share=0.001, channels=c) for c in (1, 2, 4, 5)
]
TestOneChannel, TestTwoChannels, TestFourChannels, TestFiveChannels = TestChannels


def test_a_flat_image_stays():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.equalize(types.Constant(np.full((4, 5, 3), 7, np.uint8), layout="HWC"))

    assert (pipe().run()[0].at(0) == 7).all()


def test_types_other_than_bytes_are_refused():
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.equalize(types.Constant(np.zeros((4, 5), np.float32), layout="HW"))

    with pytest.raises(RuntimeError, match="input type float32 is not supported; supported: uint8"):
        pipe().run()
