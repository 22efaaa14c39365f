# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from native_decode import ANY_DATA, GRAY, decode, peek, pillow

from encoded_images import lossless_jpeg


@pytest.mark.parametrize("channels", (1, 3))
@pytest.mark.parametrize("predictor", range(1, 8))
@pytest.mark.parametrize("bits", (2, 8, 12, 16))
def test_every_sample_is_kept(bits, predictor, channels):
    rng = np.random.default_rng(bits)
    pixels = rng.integers(0, 1 << bits, (7, 9, channels))
    pixels[3:] = pixels[3:] // 9 + (1 << bits) // 2  # noise and a smooth part
    data = lossless_jpeg(pixels, bits, predictor).tobytes()
    info = peek(data)
    assert (info["height"], info["width"], info["channels"], info["depth"]) == (7, 9, channels, bits)
    assert info["least_bytes"] <= len(data)
    dtype, top = ("u1", 255) if bits <= 8 else ("u2", 65535)
    want = np.floor(pixels * (top / ((1 << bits) - 1)) + 0.5)
    np.testing.assert_array_equal(decode(data, ANY_DATA, dtype=dtype), want)
    np.testing.assert_array_equal(decode(data, ANY_DATA, dtype=dtype, window=(2, 3, 4, 5)), want[2:6, 3:8])


def test_restarts_and_point_transform():
    pixels = np.random.default_rng(0).integers(0, 256, (12, 10))
    for rows in (1, 2, 5):
        np.testing.assert_array_equal(
            decode(lossless_jpeg(pixels, 8, 4, restart_rows=rows).tobytes(), GRAY)[..., 0], pixels
        )
    np.testing.assert_array_equal(
        decode(lossless_jpeg(pixels, 8, 7, shift=3).tobytes(), GRAY)[..., 0], pixels >> 3 << 3
    )


def test_truncated_and_damaged():
    pixels = np.random.default_rng(0).integers(0, 256, (12, 10))
    data = lossless_jpeg(pixels, 8, 4, restart_rows=3).tobytes()
    info = peek(data)
    for n in range(len(data) - 4):
        with pytest.raises(ValueError, match="JPEG|truncated|empty"):
            decode(data[:n], info=info)
    with pytest.raises(ValueError, match="restart marker 1 is missing"):
        decode(data.replace(b"\xff\xd1", b"\xff\xd5"))


def test_a_real_file(data):
    for path in data.glob("formats/jpeg_lossless/*.jpg"):
        np.testing.assert_array_equal(decode(path.read_bytes(), GRAY)[..., 0], pillow(path.read_bytes(), "L"))
