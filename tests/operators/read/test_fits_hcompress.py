# SPDX-License-Identifier: Apache-2.0
"""experimental.readers.fits: images compressed with HCOMPRESS_1, compared with astropy (CFITSIO's code)."""

import struct

import numpy as np
import pytest
from test_fits_tiles import SMOOTH, check, read, table

from optional_packages import needs

pytestmark = [needs("astropy"), pytest.mark.filterwarnings("ignore")]
HCOMPRESS = {"compression_type": "HCOMPRESS_1"}


@pytest.mark.parametrize("is_smooth", [0, 1])
@pytest.mark.parametrize("scale", [0, 2, -9, 40])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "u2", "u4"])
def test_integers(tmp_path, dtype, scale, is_smooth):
    """Lossless and lossy: differences are rounded to multiples of the scale."""
    data = (SMOOTH / 8 if dtype == "u1" else SMOOTH).astype(dtype)
    options = {"hcomp_scale": scale, "hcomp_smooth": is_smooth}
    for tile in (None, (18, 32), (50, 70), (5, 5), (9, 70), (13, 19)):
        got = check(tmp_path / "x.fits", data, **HCOMPRESS, **options, **({"tile_shape": tile} if tile else {}))
        if not scale:
            np.testing.assert_array_equal(got, data)


def test_smoothing_changes_pixels(tmp_path):
    one, other = (
        check(tmp_path / "x.fits", SMOOTH.astype("i4"), **HCOMPRESS, hcomp_scale=40, hcomp_smooth=s) for s in (0, 1)
    )
    assert (one != other).any()


@pytest.mark.parametrize("shape", [(4, 4), (5, 4), (4, 9), (8, 64), (31, 33), (129, 5), (64, 64), (100, 257)], ids=str)
@pytest.mark.parametrize("is_smooth", [0, 1])
def test_sizes(tmp_path, shape, is_smooth):
    """Images that are mostly 0, noise, negative or constant."""
    rng = np.random.default_rng(2)
    noise = rng.integers(-(2**15), 2**15, shape)
    stars = np.where(rng.random(shape) < 0.02, noise, 0)
    for data in (noise, stars, -abs(noise), np.full(shape, -7), np.zeros(shape, int), noise * 2**15):
        for scale in (0, 30):
            options = {"tile_shape": shape, "hcomp_scale": scale, "hcomp_smooth": is_smooth}
            got = check(tmp_path / "x.fits", data.astype("i4"), **HCOMPRESS, **options)
            assert scale or (got == data).all()


@pytest.mark.parametrize("method", [-1, 1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_quantised_floats(tmp_path, dtype, method):
    data = SMOOTH.astype(dtype)
    data[5] = 0
    got = check(tmp_path / "x.fits", data, **HCOMPRESS, quantize_method=method, dither_seed=3)
    assert np.abs(got - data).max() < 5


def test_planes(tmp_path):
    """Three-dimensional images with two-dimensional tiles."""
    data = np.stack([SMOOTH.astype("i2") + k for k in range(3)])
    check(tmp_path / "x.fits", data, **HCOMPRESS, tile_shape=(1, 20, 35))


# A tile of 2 x 2 pixels 5, 5, 5, 5: only their sum is not 0.
HEAD = struct.pack(">HiiiqBBB", 0xDD99, 2, 2, 0, 20, 0, 0, 0)


def tile(code, **cards):
    cards = {"ZCMPTYPE": "'HCOMPRESS_1'", "ZNAXIS": 2, "ZNAXIS1": 2, "ZNAXIS2": 2, "ZTILE1": 2, "ZTILE2": 2, **cards}
    return table(cards, struct.pack(">ii", len(code), 0), code)


def test_a_tile_made_by_hand(tmp_path):
    (tmp_path / "x.fits").write_bytes(tile(HEAD + b"\0"))
    assert read(tmp_path / "x.fits").tolist() == [[5, 5], [5, 5]]


@pytest.mark.parametrize(
    "code, error",
    [
        (HEAD, "ends too early"),
        (HEAD[:24], "damaged"),
        (b"\xdd\x98" + HEAD[2:] + b"\0", "damaged"),
        (HEAD + b"\x10", "damaged"),
        (struct.pack(">HiiiqBBB", 0xDD99, 2, 3, 0, 20, 0, 0, 0) + b"\0", "has 2 x 3 pixels instead of 4"),
        (struct.pack(">HiiiqBBB", 0xDD99, -2, -2, 0, 20, 0, 0, 0) + b"\0", "has -2 x -2 pixels instead of 4"),
        (struct.pack(">HiiiqBBB", 0xDD99, 2, 2, 0, 20, 55, 0, 0) + b"\0" * 99, "damaged"),
        (struct.pack(">HiiiqBBB", 0xDD99, 2, 2, 0, 2**62, 0, 0, 0) + b"\0", "damaged"),
        (struct.pack(">HiiiqBBB", 0xDD99, 2, 2, 2**31 - 1, 2**40, 0, 0, 0) + b"\0", "damaged"),
        (struct.pack(">HiiiqBBB", 0xDD99, 2, 2, 0, 20, 1, 0, 0) + b"\x70", "damaged"),
    ],
    ids=range(10),
)
def test_damaged(tmp_path, code, error):
    (tmp_path / "x.fits").write_bytes(tile(code))
    with pytest.raises(RuntimeError, match=error) as e:
        read(tmp_path / "x.fits")
    assert "x.fits" in str(e.value)


def test_pixels_that_nothing_holds(tmp_path):
    """2^40 pixels in 27 bytes."""
    size = {"ZNAXIS1": 2**20, "ZNAXIS2": 2**20, "ZTILE1": 2**20, "ZTILE2": 2**20}
    (tmp_path / "x.fits").write_bytes(tile(HEAD + b"\0", **size))
    with pytest.raises(RuntimeError, match="more than .* bytes can hold"):
        read(tmp_path / "x.fits")
