# SPDX-License-Identifier: Apache-2.0
import io

import numpy as np
import pytest
from PIL import Image

from harness import Case, op_test, per_sample, run


def reference(x, quality=50):
    """Pillow's encoder and decoder."""
    if not x.size:
        return x
    file = io.BytesIO()
    Image.fromarray(x).save(file, "JPEG", quality=int(np.clip(quality, 1, 100)), subsampling="4:2:0")
    return np.asarray(Image.open(file).convert("RGB"))


def pictures(rng, case):
    """Smooth with some noise, as photographs are."""
    out = []
    for i, (h, w) in enumerate(((5, 4), (1, 1), (33, 17), (8, 67), (48, 64), (0, 4))):
        y, x = np.mgrid[:h, :w]
        smooth = 128 + 100 * np.sin((y[..., None] + [1, 5, 9]) / 7 + i) * np.cos(x[..., None] / 11)
        x = np.clip(smooth + rng.normal(0, 8, (h, w, 3)), 0, 255).astype("u1")
        out.append(np.stack([x, x[::-1]]) if case.layout == "FHWC" else x)
    return out


ARGS = [{}, *({"quality": q} for q in (1, 5, 10, 25, 40, 60, 75, 90, 95, 99, 100, 0, 101, -5)),
        {"quality": per_sample(1, 101, dtype="i4")}]  # fmt: skip
ERRORS = [({"qualty": 5}, TypeError, "Did you mean 'quality'")]
TestJpeg = op_test(
    "jpeg_compression_distortion",
    reference,
    layouts=("HWC",),
    args=ARGS,
    make_input=pictures,
    errors=ERRORS,
    steps=1,  # other builds of libjpeg-turbo
    dali_steps=0,
)
TestSequence = op_test(
    "jpeg_compression_distortion", reference, layouts=("FHWC",), args=[*ARGS[:4], ARGS[-1]],
    make_input=pictures, steps=1, dali_steps=0,
)  # fmt: skip


def test_noise():
    x = np.random.default_rng(0).integers(0, 256, (61, 75, 3)).astype("u1")
    for quality in (5, 50, 95):
        ((got,),) = run("jpeg_compression_distortion", [x], Case("u1", "HWC", {"quality": quality}), {})
        np.testing.assert_array_equal(got, reference(x, quality))


@pytest.mark.parametrize(
    "sample, layout, text",
    [
        (np.zeros((4, 4, 3), "f4"), "HWC", "input type float32 is not supported"),
        (np.zeros((4, 4, 1), "u1"), "HWC", "RGB images have 3 channels; got 1"),
        (np.zeros((3, 4, 4), "u1"), "CHW", "CHW"),
        (np.zeros((1, 70000, 3), "u1"), "HWC", "JPEG: .*65500"),
    ],
)
def test_other_inputs(sample, layout, text):
    with pytest.raises(RuntimeError, match=text):
        run("jpeg_compression_distortion", [sample], Case(sample.dtype, layout, {}), {})
