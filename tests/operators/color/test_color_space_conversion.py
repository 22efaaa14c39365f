# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import Case, op_test, run, saturate
from penstock import types

LUMA = np.array([0.299, 0.587, 0.114])
# Rec. ITU-R BT.601: Y' is the luma, Cb and Cr are scaled colour differences; 8 bits with studio range.
FULL = np.stack([LUMA, (np.eye(3)[2] - LUMA) / (2 * (1 - LUMA[2])), (np.eye(3)[0] - LUMA) / (2 * (1 - LUMA[0]))])
SCALE, OFFSET = np.array([219, 224, 224]) / 255, np.array([16, 128, 128])

RGB, BGR, GRAY, YCBCR = types.RGB, types.BGR, types.GRAY, types.YCbCr


def reference(x, image_type, output_type):
    x = x.astype("f8")
    if image_type == GRAY:
        rgb = np.repeat(x, 3, axis=-1)
    elif image_type == YCBCR:
        rgb = np.linalg.solve(FULL, ((x - OFFSET) / SCALE)[..., None])[..., 0]
    else:
        rgb = x[..., ::-1] if image_type == BGR else x
    if output_type == GRAY:
        gray = (x[..., :1] - 16) / SCALE[0] if image_type == YCBCR else rgb @ LUMA[:, None]
        return saturate(gray, "u1")
    if output_type == YCBCR:
        return saturate(x if image_type == YCBCR else rgb @ FULL.T * SCALE + OFFSET, "u1")
    return saturate(rgb[..., ::-1] if output_type == BGR else rgb, "u1")


def make_input(rng, case):
    channels = 1 if case.kwargs["image_type"] == GRAY else 3
    shape = {"F": 2, "D": 3, "C": channels}
    sizes = ((5, 4), (1, 1), (0, 4), (33, 17), (8, 67), (16, 32))
    return [
        rng.integers(0, 256, [shape.get(c, {"H": h, "W": w}.get(c)) for c in case.layout]).astype("u1")
        for h, w in sizes
    ]


SAME = {
    f"image_type={t.name},output_type={t.name}": "a conversion to the same space is a copy"
    for t in (RGB, BGR, GRAY, YCBCR)
}

TestColorSpaceConversion = op_test(
    "color_space_conversion",
    reference,
    layouts=("HWC", "FHWC", "DHWC", "FDHWC"),
    args=[{"image_type": a, "output_type": b} for a in (RGB, BGR, GRAY, YCBCR) for b in (RGB, BGR, GRAY, YCBCR)],
    steps=1,  # sums near a half round by the precision of float32; GRAY uses weights of 15 bits
    make_input=make_input,
    dali_steps=0,
    dali_differs=SAME,
    errors=[
        ({"image_type": types.ANY_DATA}, ValueError, "argument 'image_type' takes types.RGB, BGR, GRAY or YCbCr"),
        ({"output_typ": RGB}, TypeError, "Did you mean 'output_type'"),
    ],
)


@pytest.mark.parametrize("space, channels", [(RGB, 1), (YCBCR, 4), (GRAY, 3)])
def test_channels_must_fit(space, channels):
    x = np.zeros((2, 3, channels), "u1")
    with pytest.raises(RuntimeError, match=f"{1 if space == GRAY else 3} channels? needed, got {channels}"):
        run("color_space_conversion", [x], Case("u1", "HWC", {"image_type": space, "output_type": BGR}), {})


def test_other_types_are_refused():
    x = np.zeros((2, 3, 3), "f4")
    with pytest.raises(RuntimeError, match="input type float32 is not supported; supported: uint8"):
        run("color_space_conversion", [x], Case("f4", "HWC", {"image_type": RGB, "output_type": BGR}), {})


def test_gray_of_every_gray_is_itself():
    x = np.repeat(np.arange(256, dtype="u1"), 3).reshape(16, 16, 3)
    ((y,),) = run("color_space_conversion", [x], Case("u1", "HWC", {"image_type": RGB, "output_type": GRAY}), {})
    np.testing.assert_array_equal(y, x[..., :1])
