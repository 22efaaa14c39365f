# SPDX-License-Identifier: Apache-2.0
"""experimental.readers.fits: types, shapes and scaling compared with the standard and astropy, and damaged files."""

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.tensors import TensorListGPU


def build(batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        return fn.experimental.readers.fits(name="r", **kwargs)

    return pipe()


def read(path, **kwargs):
    return [np.array(out.at(0)) for out in build(files=[str(path)], **kwargs).run()]


def hdu(stored, *cards, primary=False):
    """An HDU by the definition. `stored` has the numbers as stored in the file."""
    stored = np.asarray(stored)
    bitpix = stored.dtype.itemsize * (-8 if stored.dtype.kind == "f" else 8)
    first = "SIMPLE  =                    T" if primary else "XTENSION= 'IMAGE   '"
    axes = [f"NAXIS{i:<3}= {n:>20}" for i, n in enumerate(stored.shape[::-1], 1)]
    cards = [first, f"BITPIX  = {bitpix:>20} / bits", f"NAXIS   = {stored.ndim:>20}", *axes, *cards, "END"]
    header = "".join(c.ljust(80) for c in cards).encode()
    data = stored.astype(stored.dtype.newbyteorder(">")).tobytes() if stored.ndim else b""
    return header + b" " * (-len(header) % 2880) + data + bytes(-len(data) % 2880)


STORED = ("u1", "i2", "i4", "i8", "f4", "f8")
SHAPES = ((1,), (7,), (3, 5), (4, 1, 6), (33, 2, 65), (2, 3, 4, 5, 2, 2, 1, 2), (0, 3), (3, 0))


def numbers(dtype, shape):
    bits = np.random.default_rng(0).integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    x = bits.view(dtype).reshape(shape)
    return np.nan_to_num(x) if x.dtype.kind == "f" else x


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", STORED)
def test_images(tmp_path, dtype, shape):
    x = numbers(dtype, shape)
    (tmp_path / "x.fits").write_bytes(hdu(x[..., ::-1], primary=True) + hdu(x))
    (second,) = read(tmp_path / "x.fits")
    first, again, same = read(tmp_path / "x.fits", hdu_indices=[1, 2, 2])
    for got, wanted in ((second, x), (again, x), (same, x), (first, x[..., ::-1])):
        assert got.dtype == x.dtype and got.shape == x.shape
        np.testing.assert_array_equal(got, wanted)


def test_into_memory_of_the_gpu(tmp_path):
    x, y = numbers("i2", (3, 5)), numbers("f4", (2, 2, 2))
    (tmp_path / "x.fits").write_bytes(hdu(y, primary=True) + hdu(x))

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipe():
        files = [str(tmp_path / "x.fits")]
        return tuple(fn.experimental.readers.fits(device="gpu", files=files, hdu_indices=[2, 1]))

    for out, wanted in zip(pipe().run(), (x, y)):
        assert isinstance(out, TensorListGPU)
        np.testing.assert_array_equal(np.array(out.as_cpu().at(1)), wanted)


@pytest.mark.parametrize("dtype", [*STORED, "u2", "u4", "u8", "i1"])
def test_as_astropy(tmp_path, dtype):
    fits = pytest.importorskip("astropy.io.fits")
    x = numbers(dtype, (5, 3, 4))
    table = fits.BinTableHDU.from_columns([fits.Column("a", "PJ()", array=np.array([[1, 2], [3]], object))])
    fits.HDUList([fits.PrimaryHDU(), table, fits.ImageHDU(x)]).writeto(tmp_path / "x.fits")
    (got,) = read(tmp_path / "x.fits", hdu_indices=[3])
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, x)
    np.testing.assert_array_equal(got, fits.getdata(tmp_path / "x.fits", 2))


@pytest.mark.parametrize(
    "dtype, scale, zero, wanted",
    [
        ("u1", 1, -128, "i1"),
        ("u1", 1, 1, "i2"),
        ("u1", 1, 1000, "i2"),
        ("u1", 1, 40000, "u2"),
        ("u1", 1, 10**6, "i4"),
        ("i2", 1, 32768, "u2"),
        ("i2", 1, -1, "i4"),
        ("i4", 1, 2**31, "u4"),
        ("i4", 1, 2**31 + 1, "i8"),
        ("i4", 1, 5, "i8"),
        ("i8", 1, 2**63, "u8"),
        ("i8", 1, 2, "f8"),
        ("u1", 0.5, 3, "f4"),
        ("i2", 1, 0.25, "f4"),
        ("i2", 2, 0, "f4"),
        ("i4", 0.1, 7, "f8"),
        ("i8", 3, 0, "f8"),
        ("f4", 3.7, 0.1, "f4"),
        ("f8", 3.7, 0.1, "f8"),
        ("f4", 1, 5, "f4"),
    ],
    ids=str,
)
def test_scaled(tmp_path, dtype, scale, zero, wanted):
    """BSCALE * stored + BZERO in double precision, converted to a type that can represent it."""
    x = numbers(dtype, (11, 13))
    if x.dtype.kind == "f":
        x = np.random.default_rng(0).normal(size=(11, 13)).astype(dtype)
    else:
        x[0, :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    cards = (
        f"BSCALE  = {scale:>20} / x",
        f"BZERO   = {str(float(zero)).replace('e', 'D'):>20}",
        f"BLANK   = {x[0, 0]:>20}",
    )
    (tmp_path / "x.fits").write_bytes(hdu(np.int16(0), primary=True) + hdu(x, *cards))
    (got,) = read(tmp_path / "x.fits")
    assert got.dtype == np.dtype(wanted)
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(got, (x.astype("f8") * scale + zero).astype(wanted))
    else:
        assert got.astype(object).tolist() == (x.astype(object) + zero).tolist()


def test_dtypes_are_held(tmp_path):
    x = numbers("i2", (4, 5))
    (tmp_path / "x.fits").write_bytes(hdu(np.int16(0), primary=True) + hdu(x))
    np.testing.assert_array_equal(read(tmp_path / "x.fits", dtypes=[types.INT16])[0], x)
    with pytest.raises(RuntimeError, match="HDU 2 holds INT16, and dtypes says FLOAT"):
        read(tmp_path / "x.fits", dtypes=[types.FLOAT])


def test_finding_files(tmp_path):
    (tmp_path / "a").mkdir()
    for name, value in (("0.fits", 1), ("a/c.fits", 2), ("d.fit", 3)):
        (tmp_path / name).write_bytes(hdu(np.full((1,), value, "u1"), primary=True))
    (tmp_path / "list.txt").write_text("d.fit\n0.fits\n")

    def values(**kwargs):
        pipe = build(hdu_indices=1, **kwargs)
        return [int(pipe.run()[0].at(0)[0]) for _ in range(pipe.epoch_size("r"))]

    assert values(file_root=str(tmp_path)) == [1, 2]
    assert values(file_root=str(tmp_path), file_filter="*.fit") == [3]
    assert values(file_list=str(tmp_path / "list.txt")) == [3, 1]
    assert values(files=["0.fits", "a/c.fits"], file_root=str(tmp_path)) == [1, 2]


EMPTY = hdu(np.int16(0), primary=True)
X = hdu(np.arange(6, dtype="i2").reshape(2, 3))


@pytest.mark.parametrize(
    "content, error",
    [
        (b"x" * 6000, "no FITS file"),
        (EMPTY, "has 1 HDUs, number 2 was asked for"),
        (EMPTY + X[:2880], "promises 12 bytes of data, behind it the file has 0"),
        (EMPTY + X[:2000], "ends within its header"),
        (EMPTY + X.replace(b"END     ", b"XXX     "), "ends within its header|has 1"),
        (EMPTY + b"y" * 2880, "begins with 'yyyyyyyy' instead of XTENSION"),
        (EMPTY + X.replace(b" 16 /", b" 17 /"), "BITPIX is 17"),
        (EMPTY + X.replace(b"NAXIS2", b"NAXIS3"), "can.t be read"),
        (EMPTY + X.replace(b"NAXIS2", b"COMMEN"), "lacks NAXIS"),
        (EMPTY + X.replace(b"%20d" % 3, b"%20d" % (2**63 - 1)), "promises more than"),
        (EMPTY + X.replace(b"%20d" % 3, b"%20d" % (2**62)), "promises more than"),
        (EMPTY + X.replace(b"%20d" % 3, b"%20d" % 2000), "promises 8000 bytes"),
        (EMPTY + hdu(np.zeros(1, "i2"), f"PCOUNT  = {2**63 - 1:>20}"), "more than 2.63"),
        (EMPTY + hdu(np.zeros(1, "i2"), "PCOUNT  = -1"), "below 0"),
        (EMPTY + hdu(np.zeros(1, "i2"), f"GCOUNT  = {2**63:>20}"), "can.t be read"),
        (EMPTY + hdu(np.zeros(1, "i2"), "BSCALE  = nan"), "can.t be read"),
        (EMPTY + hdu(np.zeros(1, "i2"), "BZERO   = 'x'"), "can.t be read"),
        (EMPTY + hdu(np.zeros((1,) * 9, "i2")), "has 9 dimensions"),
        (EMPTY + EMPTY.replace(b"SIMPLE  =                    T", b"XTENSION= 'IMAGE   '          "), "has no data"),
        (EMPTY + X.replace(b"'IMAGE   '", b"'BINTABLE'"), "is no image but a table"),
        (
            EMPTY + hdu(np.zeros(1, "i2"), "ZIMAGE  = T").replace(b"'IMAGE   '", b"'BINTABLE'"),
            "compressed by an unknown code",
        ),
    ],
    ids=range(21),
)
def test_damaged_files(tmp_path, content, error):
    (tmp_path / "x.fits").write_bytes(content)
    (tmp_path / "y.fits").write_bytes(EMPTY + X)
    files = [str(tmp_path / "x.fits"), str(tmp_path / "y.fits")]
    if error:
        with pytest.raises(RuntimeError, match=error) as e:
            build(files=files, batch_size=2).run()
        assert "x.fits" in str(e.value)
    (out,) = build(files=files, batch_size=2, on_error="skip").run()
    assert len(out) == (1 if error else 2) and np.array(out.at(len(out) - 1)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_without_padding_behind_the_last_data(tmp_path):
    (tmp_path / "x.fits").write_bytes(EMPTY + X[: 2880 + 12])
    assert read(tmp_path / "x.fits")[0].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"files": None}, "'file_root', 'files' or 'file_list' is needed"),
        ({"files": []}, "'files' is an empty list"),
        ({"file_list": "x"}, "can't be used together"),
        ({"hdu_indices": [0]}, "the first of which is 1"),
        ({"hdu_indices": []}, "the first of which is 1"),
        ({"dtypes": [types.INT16, types.FLOAT]}, "2 dtypes for 1 hdu_indices"),
    ],
    ids=str,
)
def test_errors(tmp_path, kwargs, error):
    (tmp_path / "x.fits").write_bytes(EMPTY + X)
    with pytest.raises((ValueError, RuntimeError), match=error):
        build(**({"files": [str(tmp_path / "x.fits")]} | kwargs)).run()
