# SPDX-License-Identifier: Apache-2.0
"""Baseline JPEG on penstock's own path, with and without SIMD, against libjpeg: the one that is linked (the same
kernel, limited to it) and Pillow's."""

import io
import os
import platform
from pathlib import Path

import numpy as np
import pytest
from coefficient_jpeg import coefficient_jpeg
from native_decode import BGR, GRAY, RGB, decode, encode, peek, pillow, smooth
from PIL import Image

from penstock.core import kernels

LIBJPEG, PLAIN, BEST = range(3)
# Numbers that overflow do so as in libjpeg-turbo's loops for x86-64, on every processor; its own for ARM differ.
ON_X86 = platform.machine() == "x86_64"
OVERFLOWS = LIBJPEG if ON_X86 else PLAIN
OWN = pytest.mark.parametrize("level", (PLAIN, BEST), ids=("plain", "best"))
# Factors of luma, then of both chroma components.
SAMPLINGS = {
    "4:4:4": ((1, 1), (1, 1), (1, 1)),
    "4:2:2": ((2, 1), (1, 1), (1, 1)),
    "4:4:0": ((1, 2), (1, 1), (1, 1)),
    "4:2:0": ((2, 2), (1, 1), (1, 1)),
    "4:1:1": ((4, 1), (1, 1), (1, 1)),
    "4:1:0": ((4, 2), (1, 1), (1, 1)),
    "1x4": ((1, 4), (1, 1), (1, 1)),
    "1x3": ((1, 3), (1, 1), (1, 1)),
    "different": ((2, 2), (2, 1), (1, 2)),
    "coarse luma": ((1, 1), (2, 2), (2, 1)),
    "gray": ((1, 1),),
    "gray 2x2": ((2, 2),),
    "gray 3x1": ((3, 1),),
}


@pytest.fixture(autouse=True)
def limit():
    yield kernels.library().jpeg_limit
    kernels.library().jpeg_limit(BEST)


def like_a_photograph(rng):
    """Blocks with mostly zero high frequencies."""
    fall = 1.0 / (1 + np.add.outer(np.arange(8), np.arange(8)).ravel()) ** 1.5

    def block(component):
        values = rng.laplace(0, 90 * fall * rng.choice([0.1, 1, 3])).astype(int)
        values[0] = rng.integers(-60, 60)
        if rng.random() < 0.2:
            values[1:] = 0
        return values

    return block


def random_file(rng, sampling, height, width, **options):
    factors = SAMPLINGS[sampling]
    q = [rng.integers(1, 12, 64) for _ in factors]
    return coefficient_jpeg(rng, height, width, factors, like_a_photograph(rng), q, **options)


def random_window(rng, height, width):
    y, x = rng.integers(0, height), rng.integers(0, width)
    return int(y), int(x), int(rng.integers(1, height - y + 1)), int(rng.integers(1, width - x + 1))


def extent(data, scale):
    w, h = Image.open(io.BytesIO(data)).size
    return -(-h // scale), -(-w // scale)


@pytest.mark.parametrize("kind", ("even", "shuffled"))
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_sampling_window_and_scale(sampling, kind, limit):
    rng = np.random.default_rng(list(sampling.encode()))
    for height, width in ((1, 1), (3, 2), (2, 3), (5, 90), (41, 39), (70, 33)):
        restart = int(rng.choice([0, 1, 3]))
        data = random_file(rng, sampling, height, width, restart=restart, kind=kind)
        for scale in (1, 2, 4, 8):
            for fancy in (0, 1):
                limit(OVERFLOWS)
                full = decode(data, scale=scale, fancy_upsampling=fancy)
                gray = decode(data, GRAY, scale=scale)
                if scale == 1 and fancy and ON_X86:
                    np.testing.assert_array_equal(full, pillow(data))
                for level in (PLAIN, BEST):
                    limit(level)
                    message = f"{height} x {width}, 1/{scale}, fancy {fancy}, level {level}"
                    got = decode(data, scale=scale, fancy_upsampling=fancy)
                    np.testing.assert_array_equal(got, full, err_msg=message)
                    y, x, h, w = window = random_window(rng, *extent(data, scale))
                    part = decode(data, BGR, window=window, scale=scale, fancy_upsampling=fancy)
                    np.testing.assert_array_equal(
                        part, full[y : y + h, x : x + w, ::-1], err_msg=f"{message}, {window}"
                    )
                    part = decode(data, GRAY, window=window, scale=scale)
                    np.testing.assert_array_equal(part, gray[y : y + h, x : x + w], err_msg=f"{message}, {window}")


@OWN
@pytest.mark.parametrize("subsampling", ("4:4:4", "4:2:2", "4:2:0", "gray"))
def test_every_small_size(subsampling, level, limit):
    limit(level)
    rng = np.random.default_rng(7)
    whole = smooth(rng, 40, 40)
    for size in range(1, 41):
        for height, width in ((size, 41 - size), (size, size), (9, size), (size, 17)):
            pixels = whole[:height, :width, 0] if subsampling == "gray" else whole[:height, :width]
            options = {} if subsampling == "gray" else {"subsampling": subsampling}
            data = encode(pixels, "JPEG", quality=int(rng.integers(1, 101)), **options)
            np.testing.assert_array_equal(decode(data), pillow(data), err_msg=f"{height} x {width}")


@OWN
@pytest.mark.parametrize("subsampling", ("4:4:4", "4:2:0"))
def test_every_quality(subsampling, level, limit):
    limit(level)
    rng = np.random.default_rng(8)
    pixels = np.concatenate([smooth(rng, 50, 70), rng.integers(0, 256, (20, 70, 3)).astype("u1")])
    for quality in range(1, 101):
        data = encode(pixels, "JPEG", quality=quality, subsampling=subsampling, optimize=quality % 3 == 0)
        np.testing.assert_array_equal(decode(data), pillow(data), err_msg=f"quality {quality}")


@OWN
@pytest.mark.parametrize("quantiser", (1, 255))
@pytest.mark.parametrize("scale", (1, 2, 4, 8))
def test_numbers_that_overflow(scale, quantiser, level, limit):
    """Coefficients that no encoder creates: values beyond 16 bits must overflow as in libjpeg."""
    rng = np.random.default_rng(9)

    def block(component):
        values = np.zeros(64, int)
        some = rng.integers(0, 64, rng.choice([0, 1, 3, 20, 64]))
        if rng.random() < 0.5:
            some //= 8  # reduces all but the first row
        values[some] = rng.integers(-1023, 1024, len(some))
        values[0] = rng.integers(-1023, 1024)
        return values

    data = coefficient_jpeg(rng, 90, 120, ((1, 1),) * 3, block, [np.full(64, quantiser)] * 3)
    limit(OVERFLOWS)
    want = decode(data, scale=scale)
    if scale == 1 and ON_X86:
        np.testing.assert_array_equal(want, pillow(data))
    limit(level)
    np.testing.assert_array_equal(decode(data, scale=scale), want)


@OWN
def test_full_blocks_end_without_a_symbol(level, limit):
    """All 63 coefficients are present: the next block's bits follow immediately and are read together with the last
    ones."""
    limit(level)
    rng = np.random.default_rng(10)

    def block(component):
        values = rng.choice([-1, 1], 64)
        values[1:63] *= rng.random(62) < rng.choice([0.02, 0.5, 1])
        return values

    for kind in ("even", "long", "shuffled"):
        data = coefficient_jpeg(rng, 100, 150, SAMPLINGS["4:2:0"], block, [np.full(64, 9)] * 3, kind=kind)
        want = pillow(data)
        np.testing.assert_array_equal(decode(data), want)
        np.testing.assert_array_equal(decode(data, window=(70, 90, 20, 31)), want[70:90, 90:121])


def test_fractional_sampling_is_libjpegs_error(limit):
    data = coefficient_jpeg(
        np.random.default_rng(1), 30, 40, ((3, 2), (2, 1), (1, 1)), lambda c: np.zeros(64), [np.ones(64)] * 3
    )
    with pytest.raises(ValueError, match="Fractional sampling"):
        decode(data)


def test_number_of_a_table_that_cannot_be():
    data = bytearray(encode(smooth(np.random.default_rng(1), 30, 40), "JPEG"))
    data[data.index(b"\xff\xc0") + 12] = 40
    with pytest.raises(ValueError, match="JPEG: Quantization table 0x28 was not defined"):
        decode(bytes(data))


def test_colours_are_exact(limit):
    """Flat blocks of all values of chroma: 256 x 256 combinations."""
    rng = np.random.default_rng(11)
    values = iter(np.stack(np.meshgrid(range(-128, 128), range(-128, 128)), -1).reshape(-1, 2))
    state = {}

    def block(component):
        if component == 0:
            state["chroma"] = next(values)
            state["luma"] = rng.integers(-128, 128)
        out = np.zeros(64, int)
        out[0] = 8 * (state["luma"] if component == 0 else state["chroma"][component - 1])
        return out

    data = coefficient_jpeg(rng, 2048, 2048, ((1, 1),) * 3, block, [np.ones(64)] * 3)
    want = pillow(data)
    for level in (PLAIN, BEST):
        limit(level)
        np.testing.assert_array_equal(decode(data), want)


@pytest.mark.skipif(not os.environ.get("PENSTOCK_DATA"), reason="no PENSTOCK_DATA")
def test_photographs(limit):
    files = sorted(Path(os.environ["PENSTOCK_DATA"]).rglob("*.jpg"))
    rng = np.random.default_rng(12)
    compared = 0
    for file in files:
        data = file.read_bytes()
        try:
            if peek(data)["format"] != 1 or Image.open(file).mode not in ("RGB", "L"):
                continue
            want = pillow(data)
        except (OSError, ValueError):
            continue
        compared += 1
        np.testing.assert_array_equal(decode(data, oriented=False), want, err_msg=str(file))
        scale = int(rng.choice([1, 2, 4, 8]))
        window = random_window(rng, *extent(data, scale))
        parts = []
        for level in (LIBJPEG, PLAIN, BEST):
            limit(level)
            parts.append(decode(data, RGB, window=window, scale=scale, oriented=False))
        np.testing.assert_array_equal(parts[1], parts[0], err_msg=f"{file} {window} 1/{scale}")
        np.testing.assert_array_equal(parts[2], parts[0], err_msg=f"{file} {window} 1/{scale}")
    assert compared > 10
