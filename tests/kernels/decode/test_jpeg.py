# SPDX-License-Identifier: Apache-2.0
import io

import numpy as np
import pytest
from native_decode import ANY_DATA, BGR, GRAY, RGB, YCBCR, decode, encode, peek, pillow, smooth, turn
from PIL import Image

SUBSAMPLINGS = ("4:4:4", "4:2:2", "4:2:0", "4:1:1", "4:4:0", "gray")


def jpeg(pixels, subsampling="4:2:0", **options):
    if subsampling == "gray":
        return encode(pixels[..., 0], "JPEG", **options)
    if subsampling == "4:4:0":
        # Pillow does not write 4:4:0. Exchanging the sampling factors of a 4:2:2 file gives one with the same blocks,
        # wherever both kinds have the same number of MCUs.
        data = bytearray(encode(pixels, "JPEG", subsampling="4:2:2", **options))
        at = next(i for i in range(len(data)) if data[i] == 0xFF and data[i + 1] in (0xC0, 0xC2))
        assert data[at + 11] == 0x21
        data[at + 11] = 0x12
        return bytes(data)
    return encode(pixels, "JPEG", subsampling=subsampling, **options)


def files():
    rng = np.random.default_rng(3)
    for subsampling in SUBSAMPLINGS:
        for progressive in (False, True):
            for h, w in ((203, 301), (64, 96), (17, 23), (1, 1), (8, 200), (161, 7)):
                if subsampling == "4:4:0" and (h % 16 or w % 16):
                    continue
                yield (
                    f"{subsampling}-{'progressive' if progressive else 'baseline'}-{h}x{w}",
                    jpeg(smooth(rng, h, w), subsampling, quality=85, progressive=progressive),
                )


FILES = dict(files())


@pytest.mark.parametrize("name", FILES)
def test_full_decode_has_libjpegs_pixels(name):
    data = FILES[name]
    want = pillow(data)
    np.testing.assert_array_equal(decode(data), want)
    np.testing.assert_array_equal(decode(data, BGR), want[..., ::-1])
    image = Image.open(io.BytesIO(data))
    image.draft("L", image.size)
    np.testing.assert_array_equal(decode(data, GRAY)[..., 0], np.asarray(image))


@pytest.mark.parametrize("name", FILES)
def test_any_region_equals_the_full_decode_cropped(name):
    data = FILES[name]
    full = decode(data)
    h, w = full.shape[:2]
    rng = np.random.default_rng(5)
    for _ in range(60):
        y, x = rng.integers(0, h), rng.integers(0, w)
        window = (y, x, rng.integers(1, h - y + 1), rng.integers(1, w - x + 1))
        part = decode(data, window=window)
        np.testing.assert_array_equal(part, full[y : y + window[2], x : x + window[3]], err_msg=f"window {window}")


@pytest.mark.parametrize("scale", (2, 4, 8))
@pytest.mark.parametrize("name", FILES)
def test_scaled_decode(name, scale):
    data = FILES[name]
    image = Image.open(io.BytesIO(data))
    h, w = -(-image.size[1] // scale), -(-image.size[0] // scale)
    full = decode(data, scale=scale)
    image.draft(None, (w, h))
    if image.size == (w, h):
        np.testing.assert_array_equal(full, np.asarray(image.convert("RGB")))
    rng = np.random.default_rng(5)
    for _ in range(10):
        y, x = rng.integers(0, h), rng.integers(0, w)
        window = (y, x, rng.integers(1, h - y + 1), rng.integers(1, w - x + 1))
        part = decode(data, window=window, scale=scale)
        np.testing.assert_array_equal(part, full[y : y + window[2], x : x + window[3]], err_msg=f"window {window}")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("output_type", (RGB, BGR, GRAY, YCBCR, ANY_DATA))
def test_orientation_with_region(orientation, output_type):
    exif = Image.Exif()
    exif[0x112] = orientation
    data = encode(smooth(np.random.default_rng(1), 45, 70), "JPEG", exif=exif)
    assert peek(data)["orientation"] == orientation
    stored = decode(data, output_type, oriented=False)
    want = turn(stored, orientation)
    np.testing.assert_array_equal(decode(data, output_type), want)
    for window in ((3, 5, 20, 31), (0, 0, 45, 45), (44, 44, 1, 1)):
        y, x, h, w = window
        np.testing.assert_array_equal(decode(data, output_type, window=window), want[y : y + h, x : x + w])


def test_ycbcr_is_bt601_studio_range():
    data = FILES["4:2:0-baseline-203x301"]
    rgb = pillow(data).astype("f8")
    m = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]]) / 255
    want = rgb @ m.T + (16, 128, 128)
    assert np.abs(decode(data, YCBCR) - want).max() <= 0.502


@pytest.mark.parametrize(
    ("dtype", "top"), (("u2", 65535), ("i1", 127), ("i2", 32767), ("u4", 2**32 - 1), ("i4", 2**31 - 1), ("f4", 1))
)
def test_other_types_span_their_range(dtype, top):
    data = FILES["4:4:4-baseline-203x301"]
    got = decode(data, dtype=dtype, window=(20, 30, 50, 60)).astype("f8")
    want = pillow(data)[20:70, 30:90] / 255.0 * top
    assert np.abs(got - want).max() <= max(0.51 if dtype != "f4" else 1e-7, top * 1e-7)


@pytest.mark.parametrize("adobe", (True, False))
def test_cmyk(adobe):
    rng = np.random.default_rng(1)
    data = encode(Image.fromarray(smooth(rng, 40, 50, 4), "CMYK"), "JPEG", quality=95)
    stored = 255 - np.asarray(Image.open(io.BytesIO(data))).astype(int)  # Pillow undoes Adobe's inversion
    if not adobe:
        at = data.index(b"Adobe") - 4
        data = data[:at] + data[at + 16 :]
        stored = 255 - stored
    assert peek(data)["channels"] == 4
    want = stored[..., :3] * stored[..., 3:] / 255
    got = decode(data)
    assert np.abs(got - want).max() <= 1
    raw = decode(data, ANY_DATA)
    assert raw.shape == (40, 50, 4)
    np.testing.assert_array_equal(raw, stored if adobe else 255 - stored)
    assert np.abs(decode(data, GRAY)[..., 0] - want @ (0.299, 0.587, 0.114)).max() <= 1.5


def test_ycck():
    rng = np.random.default_rng(1)
    data = bytearray(encode(Image.fromarray(smooth(rng, 40, 50, 4), "CMYK"), "JPEG", quality=95))
    data[data.index(b"Adobe") + 11] = 2
    got, want = decode(bytes(data)), pillow(bytes(data))
    assert np.abs(got.astype(int) - want).max() <= 1


def test_restart_intervals_and_trailing_bytes():
    pixels = smooth(np.random.default_rng(1), 100, 120)
    data = encode(pixels, "JPEG", restart_marker_rows=1)
    np.testing.assert_array_equal(decode(data), pillow(data))
    np.testing.assert_array_equal(decode(data, window=(50, 60, 20, 20)), pillow(data)[50:70, 60:80])
    np.testing.assert_array_equal(decode(data + b"trailing"), pillow(data))


@pytest.mark.parametrize("progressive", (False, True))
@pytest.mark.parametrize("keep", (0.999, 0.9, 0.5, 0.2))
def test_truncated_is_an_error(progressive, keep):
    data = encode(smooth(np.random.default_rng(1), 200, 300), "JPEG", progressive=progressive, quality=90)
    cut = data[: int(len(data) * keep)]
    with pytest.raises(ValueError, match="JPEG: Premature end of JPEG file"):
        decode(cut)
    with pytest.raises(ValueError, match="JPEG: Premature end of JPEG file"):
        decode(cut, window=(0, 0, 10, 10))


def test_every_length_of_a_small_file():
    data = encode(smooth(np.random.default_rng(1), 24, 24), "JPEG")
    info = peek(data)
    for n in range(len(data) - 1):
        with pytest.raises(ValueError):
            decode(data[:n], info=info)


def test_lost_restart_interval_is_an_error():
    data = bytearray(encode(smooth(np.random.default_rng(1), 200, 120), "JPEG", restart_marker_rows=1))
    data[data.index(b"\xff\xd3") + 1] = 0xD5
    with pytest.raises(ValueError, match="JPEG: Corrupt JPEG data: found marker 0xd5 instead of RST3"):
        decode(bytes(data))


def test_wrong_promise_is_an_error():
    data = FILES["4:2:0-baseline-64x96"]
    info = peek(data).copy()
    info["height"] = 65
    with pytest.raises(ValueError, match="the decoder sees 64 x 96 pixels, the header said 65 x 96"):
        decode(data, info=info)


def test_too_many_scans():
    data = encode(smooth(np.random.default_rng(1), 16, 16), "JPEG", progressive=True)
    at = data.index(b"\xff\xda")
    end = data.index(b"\xff", at + 12)
    while data[end + 1] in (0, *range(0xD0, 0xD8)):
        end = data.index(b"\xff", end + 2)
    bomb = data[:end] + data[at:end] * 600 + data[end:]
    with pytest.raises(ValueError, match="scans|progression"):
        decode(bomb)
