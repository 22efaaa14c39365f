# SPDX-License-Identifier: Apache-2.0
"""The Huffman decoder of baseline JPEG compared with libjpeg's, which Pillow uses: the same pixels, or an error in
both."""

import io
import platform

import numpy as np
import pytest
from native_decode import GRAY, decode, encode, peek, pillow, smooth
from PIL import Image, ImageFile

ImageFile.MAXBLOCK = 1 << 22  # Pillow's optimizing encoder needs room for the whole file

SHAPES = ((203, 301), (8, 8), (33, 17), (1, 200))


def pictures(kind, h, w):
    rng = np.random.default_rng(9)
    if kind == "noise":
        return rng.integers(0, 256, (h, w, 3)).astype("u1")
    if kind == "extremes":  # the largest possible coefficients
        return (rng.integers(0, 2, (h, w, 3)) * 255).astype("u1")
    if kind == "flat":
        return np.full((h, w, 3), 77, "u1")
    return smooth(rng, h, w)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("subsampling", ("4:4:4", "4:2:2", "4:2:0", "4:1:1"))
@pytest.mark.parametrize("optimize", (False, True))
@pytest.mark.parametrize("quality", (3, 50, 92, 100))
@pytest.mark.parametrize("kind", ("noise", "extremes", "flat", "smooth"))
def test_same_pixels(kind, quality, optimize, subsampling, shape):
    data = encode(pictures(kind, *shape), "JPEG", quality=quality, optimize=optimize, subsampling=subsampling)
    np.testing.assert_array_equal(decode(data), pillow(data))
    np.testing.assert_array_equal(decode(data, GRAY)[..., 0], luma(data))


def luma(data):
    image = Image.open(io.BytesIO(data))
    image.draft("L", image.size)
    return np.asarray(image)


@pytest.mark.parametrize("options", [{"restart_marker_blocks": n} for n in (1, 2, 7, 13, 1000)])
@pytest.mark.parametrize("mode", ("RGB", "L", "CMYK"))
def test_restart_intervals(options, mode):
    image = Image.fromarray(pictures("smooth", 150, 170)).convert(mode)
    data = encode(image, "JPEG", **options)
    full = decode(data)
    assert np.abs(full.astype(int) - pillow(data)).max() <= (mode == "CMYK")
    np.testing.assert_array_equal(decode(data, window=(70, 90, 30, 40)), full[70:100, 90:130])


def test_one_component_with_sampling_factors():
    data = bytearray(encode(pictures("smooth", 70, 90)[..., 0], "JPEG"))
    at = data.index(b"\xff\xc0")
    assert data[at + 11] == 0x11
    data[at + 11] = 0x22
    full = decode(bytes(data))
    np.testing.assert_array_equal(full, pillow(bytes(data)))
    for window in ((0, 0, 5, 5), (30, 40, 30, 40), (60, 80, 10, 10)):
        y, x, h, w = window
        np.testing.assert_array_equal(decode(bytes(data), window=window), full[y : y + h, x : x + w])


def test_fill_bytes_and_bytes_too_many_are_harmless():
    data = encode(pictures("smooth", 60, 70), "JPEG")
    for end in (b"\xff\xff\xff\xd9", b"\0\0\0\xff\xd9", b"\x12\x34\xff\0\xff\xd9"):
        np.testing.assert_array_equal(decode(data[:-2] + end), pillow(data))


@pytest.mark.parametrize("restarts", (False, True))
def test_damage_is_judged_by_libjpeg(restarts):
    data = encode(pictures("smooth", 64, 80), "JPEG", quality=80, **({"restart_marker_rows": 1} if restarts else {}))
    start = data.index(b"\xff\xda") + 14
    rng = np.random.default_rng(4)
    info, decoded, refused = peek(data), 0, 0
    for _ in range(600):
        bad = bytearray(data)
        for _ in range(rng.integers(1, 3)):
            bad[rng.integers(start, len(bad) - 2)] = rng.integers(0, 256)
        bad = bytes(bad)
        try:
            got = decode(bad, info=info)
        except ValueError as e:
            assert str(e).startswith("JPEG: ")
            refused += 1
            continue
        decoded += 1
        if (
            platform.machine() == "x86_64"
        ):  # numbers that overflow do so in another way in libjpeg-turbo's loops for ARM
            np.testing.assert_array_equal(got, pillow(bad))
    assert decoded > 5 and refused > 5
