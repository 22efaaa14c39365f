# SPDX-License-Identifier: Apache-2.0
"""experimental.readers.fits: tile-compressed images, compressed and decompressed by astropy (CFITSIO's codes)."""

import gzip
import struct

import numpy as np
import pytest

from optional_packages import Package, needs
from penstock import fn, pipeline_def

astropy = Package("astropy.io.fits")
pytestmark = [needs("astropy"), pytest.mark.filterwarnings("ignore")]
YY, XX = np.mgrid[0:50, 0:70]
SMOOTH = 1000 + 200 * np.sin(XX / 9) + 100 * np.cos(YY / 5) + np.random.default_rng(0).normal(0, 5, (50, 70))


def read(path, hdu=2, on_error="raise"):
    @pipeline_def(batch_size=1, num_threads=1, on_error=on_error)
    def pipe():
        return fn.experimental.readers.fits(files=[str(path)], hdu_indices=[hdu])

    return np.array(pipe().run()[0].at(0))


def pack(path, data, **kwargs):
    """Compresses `data` to a file and returns what astropy reads from it."""
    hdus = astropy.HDUList([astropy.PrimaryHDU(), astropy.CompImageHDU(data, **kwargs)])
    hdus.writeto(path, overwrite=True)
    with astropy.open(path) as file:
        unpacked = np.array(file[1].data)
    return unpacked.astype(unpacked.dtype.newbyteorder("="))


def check(path, data, **kwargs):
    wanted = pack(path, data, **kwargs)
    got = read(path)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)
    return got


@pytest.mark.parametrize("tile", [None, (16, 32), (50, 70), (1, 1), (7, 70), (50, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "u2", "u4", "f4", "f8"])
@pytest.mark.parametrize("code", ["RICE_1", "GZIP_1", "GZIP_2", "NOCOMPRESS"])
def test_images(tmp_path, code, dtype, tile):
    data = (SMOOTH / 8 if dtype == "u1" else SMOOTH).astype(dtype)
    got = check(tmp_path / "x.fits", data, compression_type=code, **({"tile_shape": tile} if tile else {}))
    if data.dtype.kind != "f":
        np.testing.assert_array_equal(got, data)


@pytest.mark.parametrize("tile", [None, (16, 32)], ids=str)
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
def test_masks(tmp_path, dtype, tile):
    """PLIO, for integers below 2^24 in long runs."""
    data = np.random.default_rng(0).integers(-3, 3, (50, 70)).clip(0)
    data[10:30, 5:60] = 5 if dtype == "u1" else 30000
    if dtype == "i4":
        data[12] = 2**23 + np.arange(70) * 4000
    kwargs = {"tile_shape": tile} if tile else {}
    got = check(tmp_path / "x.fits", data.astype(dtype), compression_type="PLIO_1", **kwargs)
    np.testing.assert_array_equal(got, data)


@pytest.mark.parametrize("seed", [1, 3, 9999])
@pytest.mark.parametrize("code", ["RICE_1", "GZIP_1", "GZIP_2"])
@pytest.mark.parametrize("method", [-1, 1, 2])  # without dithering, and by the standard's two methods
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_quantised_floats(tmp_path, dtype, method, code, seed):
    data = SMOOTH.astype(dtype)
    data[3, 4], data[5], data[7:9, 20:30] = np.nan, 0, np.nan
    big = np.tile(data, (4, 3))  # the random numbers begin anew
    for x, kwargs in ((data, {}), (big, {"tile_shape": (100, 210)})):
        got = check(tmp_path / "x.fits", x, compression_type=code, quantize_method=method, dither_seed=seed, **kwargs)
        assert np.isnan(got).any() and np.nanmax(np.abs(got - x)) < 5


@pytest.mark.parametrize("code", ["GZIP_1", "GZIP_2"])
def test_floats_without_loss(tmp_path, code):
    data = SMOOTH.astype("f4")
    np.testing.assert_array_equal(check(tmp_path / "x.fits", data, compression_type=code, quantize_level=0), data)


def test_tiles_that_can_not_be_quantised(tmp_path):
    """Some tiles have unquantised floats, in separate columns."""
    rng = np.random.default_rng(0)
    check(tmp_path / "x.fits", rng.normal(0, 1e30, (40, 40)).astype("f4"), compression_type="RICE_1")
    mixed = SMOOTH.astype("f4")
    mixed[20:25] = rng.normal(0, 1, (5, 70)) * 10.0 ** rng.integers(-30, 30, (5, 70))
    mixed[30] = 2.5
    check(tmp_path / "x.fits", mixed, compression_type="RICE_1")


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
@pytest.mark.parametrize("code", ["RICE_1", "GZIP_2"])
def test_noise_of_all_bits(tmp_path, code, dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    data = rng.integers(info.min, info.max, (40, 41), dtype, endpoint=True)
    data[5], data[6, ::2], data[6, 1::2] = 0, info.min, info.max
    np.testing.assert_array_equal(check(tmp_path / "x.fits", data, compression_type=code), data)


@pytest.mark.parametrize("shape, tile", [((300,), None), ((5, 20, 30), (2, 7, 30)), ((3, 4, 5, 6), (1, 4, 2, 4))])
def test_dimensions(tmp_path, shape, tile):
    data = np.random.default_rng(0).integers(0, 99, shape).astype("i2")
    kwargs = {"tile_shape": tile} if tile else {}
    np.testing.assert_array_equal(check(tmp_path / "x.fits", data, compression_type="RICE_1", **kwargs), data)


def test_an_image_of_before_and_behind(tmp_path):
    data = SMOOTH.astype("i2")
    image = astropy.CompImageHDU(data, compression_type="RICE_1")
    hdus = [astropy.PrimaryHDU(data[:3]), image, astropy.ImageHDU(data[:5].astype("f4"))]
    astropy.HDUList(hdus).writeto(tmp_path / "x.fits")
    for hdu, wanted in enumerate((data[:3], data, data[:5].astype("f4")), 1):
        np.testing.assert_array_equal(read(tmp_path / "x.fits", hdu), wanted)


def table(cards, rows=b"", heap=b"", form="1PB(9)"):
    """An HDU with one column of compressed data, by the standard."""
    given = {
        **{"XTENSION": "'BINTABLE'", "BITPIX": 8, "NAXIS": 2, "NAXIS1": 8, "NAXIS2": len(rows) // 8},
        **{"PCOUNT": len(heap), "GCOUNT": 1, "TFIELDS": 1, "TTYPE1": "'COMPRESSED_DATA'", "TFORM1": f"'{form}'"},
        **{"ZIMAGE": "T", "ZBITPIX": 16, "ZNAXIS": 1, "ZNAXIS1": 4, "ZCMPTYPE": "'GZIP_1'", **cards},
    }
    text = "".join(f"{k:<8}= {v:>20}".ljust(80) for k, v in given.items()) + "END".ljust(80)
    empty = "".join(c.ljust(80) for c in ("SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 0", "END")).ljust(2880)
    data = rows + heap
    return empty.encode() + text.ljust(-(-len(text) // 2880) * 2880).encode() + data.ljust(-(-len(data) // 2880) * 2880)


GOOD = gzip.compress(np.arange(4, dtype=">i2").tobytes())


def test_a_table_made_by_the_standard(tmp_path):
    (tmp_path / "x.fits").write_bytes(table({}, struct.pack(">ii", len(GOOD), 0), GOOD))
    assert read(tmp_path / "x.fits").tolist() == [0, 1, 2, 3]
    (tmp_path / "x.fits").write_bytes(table({"THEAP": 12}, struct.pack(">ii", len(GOOD), 0), b"gap!" + GOOD))
    assert read(tmp_path / "x.fits").tolist() == [0, 1, 2, 3]


def test_places_of_64_bits(tmp_path):
    row = struct.pack(">qq", len(GOOD), 3)
    content = table({"NAXIS1": 16, "NAXIS2": 1}, row, b"gap" + GOOD, form="1QB(9)")
    (tmp_path / "x.fits").write_bytes(content)
    assert read(tmp_path / "x.fits").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "cards, row, heap, error",
    [
        ({"ZCMPTYPE": "'BZIP2_1'"}, (len(GOOD), 0), GOOD, "compressed by BZIP2_1; RICE_1, GZIP_1"),
        ({}, (len(GOOD), 1), GOOD, "tile 1 lie beyond the table's heap"),
        ({}, (-1, 0), GOOD, "beyond the table's heap"),
        ({}, (len(GOOD), -1), GOOD, "beyond the table's heap"),
        ({}, (len(GOOD) - 1, 0), GOOD, "damaged"),
        ({}, (0, 0), GOOD, "tile 1 has no data"),
        ({"ZNAXIS1": 5}, (len(GOOD), 0), GOOD, "of 5 pixels has 8 bytes|has 8 bytes instead of 10"),
        ({"ZNAXIS1": 2**62}, (len(GOOD), 0), GOOD, "more than .* bytes can hold"),
        ({"ZNAXIS1": 0}, (len(GOOD), 0), GOOD, "below 1"),
        ({"ZTILE1": 1}, (len(GOOD), 0), GOOD, "4 tiles, the table 1 rows"),
        ({"ZTILE1": -4}, (len(GOOD), 0), GOOD, "below 1"),
        ({"ZNAXIS": 9}, (len(GOOD), 0), GOOD, "has 9 dimensions"),
        ({"ZBITPIX": 24}, (len(GOOD), 0), GOOD, "ZBITPIX is 24"),
        ({"THEAP": 2**40}, (len(GOOD), 0), GOOD, "heap of the table begins behind"),
        ({"TFORM1": "'3PB(9)'"}, (len(GOOD), 0), GOOD, "more bytes than its rows"),
        ({"TFORM1": "'1K'"}, (len(GOOD), 0), GOOD, "has no arrays"),
        ({"ZCMPTYPE": "'RICE_1'", "ZNAME1": "'BYTEPIX'", "ZVAL1": 3}, (len(GOOD), 0), GOOD, "BYTEPIX 3 can't be"),
        ({"ZCMPTYPE": "'RICE_1'"}, (3, 0), b"\0\0\0", "ends too early"),
        ({"ZCMPTYPE": "'PLIO_1'"}, (4, 0), b"\0\0\0\1", "ends too early"),
        ({"ZBITPIX": -32, "ZCMPTYPE": "'RICE_1'"}, (9, 0), bytes(9), "there is no ZSCALE"),
    ],
    ids=range(20),
)
def test_damaged(tmp_path, cards, row, heap, error):
    (tmp_path / "x.fits").write_bytes(table(cards, struct.pack(">ii", *row), heap))
    with pytest.raises(RuntimeError, match=error) as e:
        read(tmp_path / "x.fits")
    assert "x.fits" in str(e.value)
