# SPDX-License-Identifier: Apache-2.0
"""Pages of Parquet files that are read without pyarrow, compared with pyarrow."""

import contextlib
import ctypes
import io

import numpy as np
import pytest
from parquet_files import build

from optional_packages import Package, needs
from penstock.core.kernels import library
from penstock.operators.read import _parquet_pages, _tables

pa = Package("pyarrow")
pq = Package("pyarrow.parquet")
pytestmark = needs("pyarrow")

N = 500


class NoObjects:
    """For local files only."""

    def active(self):
        return contextlib.nullcontext()


def values(rng, n=N, nulls=0.0):
    """Columns that native code can read, with some null values."""
    words = [rng.bytes(int(k)) for k in rng.integers(0, 40, 20)]
    without = rng.random(n) < nulls
    some = lambda of, kind: pa.array([None if w else of(i) for i, w in enumerate(without)], kind)
    file = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return {
        "content": some(lambda i: rng.bytes(i * 7 % 90), pa.binary()),
        "again": some(lambda i: words[i * i % 20], pa.binary()),
        "same": some(lambda i: b"the same", pa.large_binary()),
        "text": some(lambda i: f"ü{i}" * (i % 3), pa.string()),
        "four": some(lambda i: b"%04d" % (i % 99), pa.binary(4)),
        "image": some(lambda i: {"bytes": rng.bytes(i % 50), "path": None}, file),
        "label": some(lambda i: i % 9, pa.int64()),
        "narrow": some(lambda i: i % 256 - 128, pa.int8()),
        "unsigned": some(lambda i: 2**32 - 1 - i, pa.uint32()),
        "ratio": some(lambda i: i / 7, pa.float32()),
        "double": some(lambda i: i / 7, pa.float64()),
        "half": some(lambda i: np.float16(i / 8), pa.float16()),
        "kind": some(lambda i: "cat dog cow".split()[i % 3], pa.string()).dictionary_encode(),
    }


def contents(table):
    """The values of all rows of a table of Parquet files, by column: bytes, or the reason why a value is missing."""
    found = [[] for _ in table.columns]
    for group in range(len(table.begins) - 1):
        for column, of_group in zip(found, table.read(group).columns):
            assert len(of_group.length) == table.begins[group + 1] - table.begins[group]
            for row, (at, n) in enumerate(zip(of_group.address.tolist(), of_group.length.tolist())):
                value = ctypes.string_at(at, n * of_group.dtype.itemsize)
                column.append((of_group.dtype.str, of_group.why.get(row, of_group.paths.get(row, value))))
    return dict(zip(table.columns, found))


def read_both_ways(path, columns, monkeypatch):
    """What native code reads, what pyarrow reads, and the columns that need pyarrow."""
    of_arrow = set()
    real = _tables.ParquetFiles._by_arrow
    spy = lambda self, group, file, names: of_arrow.update(names) or real(self, group, file, names)
    with monkeypatch.context() as m:
        m.setattr(_tables.ParquetFiles, "_by_arrow", spy)
        got = contents(_tables.ParquetFiles([str(path)], columns, NoObjects()))
    with monkeypatch.context() as m:
        m.setattr(_tables, "plain_column", lambda *_: None)
        wanted = contents(_tables.ParquetFiles([str(path)], columns, NoObjects()))
    return got, wanted, of_arrow


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_the_same_as_pyarrow(tmp_path, monkeypatch, compression, use_dictionary, version, nulls):
    table = pa.table(values(np.random.default_rng(3), nulls=nulls))
    for k, (page, batch, group) in enumerate(((1 << 20, 1024, N), (100, 7, 64), (1000, 50, 499))):
        options = {"data_page_size": page, "write_batch_size": batch, "row_group_size": group}
        options |= {"dictionary_pagesize_limit": 300} if k == 1 else {}  # then it goes on without one
        kinds = {"compression": compression, "use_dictionary": use_dictionary, "data_page_version": version}
        pq.write_table(table, tmp_path / "a.parquet", **kinds, **options)
        got, wanted, of_arrow = read_both_ways(tmp_path / "a.parquet", table.column_names, monkeypatch)
        assert got == wanted and not of_arrow


def test_columns_that_are_never_null(tmp_path, monkeypatch):
    table = pa.table(values(np.random.default_rng(4)))
    schema = pa.schema([f.with_nullable(False) for f in table.schema])
    for version in ("1.0", "2.0"):
        pq.write_table(table.cast(schema), tmp_path / "a.parquet", data_page_version=version, row_group_size=90)
        got, wanted, of_arrow = read_both_ways(tmp_path / "a.parquet", table.column_names, monkeypatch)
        assert got == wanted and not of_arrow


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_lengths_by_their_differences(tmp_path, monkeypatch, compression, nulls):
    table = pa.table(values(np.random.default_rng(5), nulls=nulls)).select(["content", "again", "text", "image"])
    names = {"content": "content", "again": "again", "text": "text", "image.bytes": "image"}
    encodings = dict.fromkeys(names, "DELTA_LENGTH_BYTE_ARRAY")
    options = {"use_dictionary": False, "column_encoding": encodings, "compression": compression}
    for page in (1 << 20, 100):
        pq.write_table(table, tmp_path / "a.parquet", data_page_size=page, write_batch_size=5, **options)
        assert "DELTA_LENGTH_BYTE_ARRAY" in pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0).encodings
        got, wanted, of_arrow = read_both_ways(tmp_path / "a.parquet", table.column_names, monkeypatch)
        assert got == wanted and not of_arrow


@pytest.mark.parametrize(
    "options, names",
    [
        ({"compression": "gzip"}, "content label image vector flag"),
        ({"compression": "brotli"}, "content label image vector flag"),
        ({"compression": "lz4"}, "content label image vector flag"),
        ({}, "vector flag"),
        ({"compression": {"content": "gzip"}}, "content vector flag"),
        ({"column_encoding": {"content": "DELTA_BYTE_ARRAY"}}, "content vector flag"),
        ({"column_encoding": {"label": "DELTA_BINARY_PACKED"}}, "label vector flag"),
        ({"column_encoding": {"label": "BYTE_STREAM_SPLIT"}}, "label vector flag"),
    ],
    ids=str,
)
def test_what_is_left_to_pyarrow(tmp_path, monkeypatch, options, names):
    found = values(np.random.default_rng(6), nulls=0.1)
    found = {name: found[name] for name in ("content", "label", "image")}
    found["vector"] = pa.array([[1.0] * (i % 4) for i in range(N)], pa.list_(pa.float32()))
    found["flag"] = pa.array([i % 3 == 0 for i in range(N)])
    use_dictionary = "column_encoding" not in options
    pq.write_table(pa.table(found), tmp_path / "a.parquet", row_group_size=90, use_dictionary=use_dictionary, **options)
    got, wanted, of_arrow = read_both_ways(tmp_path / "a.parquet", list(found), monkeypatch)
    assert got == wanted and of_arrow == set(names.split())


def test_names_with_dots(tmp_path, monkeypatch):
    """A column "image.bytes" is not the field of a struct {bytes, path}."""
    found = values(np.random.default_rng(7))
    found = {"image": found["image"], "image.bytes": found["content"], "a.b": found["label"]}
    pq.write_table(pa.table(found), tmp_path / "a.parquet")
    # pyarrow would read both columns for either name.
    table = _tables.ParquetFiles([str(tmp_path / "a.parquet")], ["a.b"], NoObjects())
    assert [v for _, v in contents(table)["a.b"]] == [x.to_bytes(8, "little") for x in found["a.b"].to_pylist()]


def test_paths_where_there_are_no_bytes(tmp_path, monkeypatch):
    file = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = [{"bytes": b"x" * i if i % 3 else None, "path": f"ü{i}.jpg" if i % 2 else None} for i in range(N)]
    rows[5] = None
    rows[8] = {"bytes": None, "path": ""}
    for version in ("1.0", "2.0"):
        pq.write_table(pa.table({"image": pa.array(rows, file)}), tmp_path / "a.parquet", data_page_version=version)
        got, wanted, of_arrow = read_both_ways(tmp_path / "a.parquet", ["image"], monkeypatch)
        assert got == wanted and not of_arrow


# Damage ---------------------------------------------------------------------------------------------------------------


def chunk(path, group=1, column=0):
    about = pq.read_metadata(path).row_group(group).column(column)
    begin = min(x for x in (about.dictionary_page_offset, about.data_page_offset) if x)
    return begin, about.total_compressed_size


@pytest.fixture
def two_groups(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"image": pa.array([b"%d" % i * 9 for i in range(40)]), "label": range(40)})
    pq.write_table(table, path, row_group_size=20, compression="none", use_dictionary=False, write_statistics=False)
    return path


@pytest.mark.parametrize(
    "before_end, change, reason",
    [
        (None, b"\xff" * 40, "the page's header has a field of the type 15"),
        (None, b"\x00", "the page's header lacks its type or size"),
        (None, b"\x15\x02\x15\x02\x15\xfe\xff\xff\xff\x0f\x00", "it has 2147483647 bytes, of which only"),
        (None, b"\x15\x00\x15\x02\x15\x02\x2c\x15\x7e\x00\x00", "it has 63 values, where 20 rows are left"),
        (18 + 4, b"\xff\xff\xff\x7f", "a value has 2147483647 bytes, of which"),  # the length of the last one
    ],
    ids=str,
)
def test_damaged_pages(two_groups, before_end, change, reason):
    begin, size = chunk(two_groups)
    at = begin if before_end is None else begin + size - before_end
    raw = bytearray(two_groups.read_bytes())
    raw[at : at + len(change)] = change
    two_groups.write_bytes(raw)
    pipe = build(str(two_groups), ("label", "image"), batch_size=40, on_error="skip")
    assert pipe.run()[0].as_array().ravel().tolist() == list(range(20))
    errors = pipe.errors()
    assert len(errors) >= 20
    for error in errors[:20]:
        assert f"{two_groups}, row group 1, row " in error.source
        assert error.reason.startswith("the row group can't be read: the column 'image', page 1: " + reason)


def test_files_that_end_early(two_groups):
    with pytest.raises(ValueError, match="the file ends at byte 3, within a column"):
        _parquet_pages.read_file(io.BytesIO(b"abc"), 1, 5)
    raw = two_groups.read_bytes()
    for n in (len(raw) - 1, chunk(two_groups)[0] + 10):
        two_groups.write_bytes(raw[:n])
        with pytest.raises((ValueError, RuntimeError), match="a.parquet"):
            build(str(two_groups)).build()


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_any_byte_may_be_wrong(tmp_path, compression):
    """Then some rows differ, or the row group cannot be read."""
    table = pa.table(values(np.random.default_rng(8), n=30, nulls=0.2)).select(["content", "again", "label", "image"])
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression=compression, data_page_size=200, write_batch_size=5)
    good, failed = path.read_bytes(), 0
    end = max(sum(chunk(path, 0, k)) for k in range(5))
    for k in range(4, end, 11):
        raw = bytearray(good)
        raw[k] ^= 0xFF
        path.write_bytes(raw)
        try:
            contents(_tables.ParquetFiles([str(path)], table.column_names, NoObjects()))
        except (ValueError, OSError) as e:
            failed += "the column '" in str(e)
    assert failed > end // 100


# Snappy ---------------------------------------------------------------------------------------------------------------


def unpack(packed, size):
    to, error = np.full(size + 64, 0x5C, "u1"), ctypes.create_string_buffer(256)
    failed = library().snappy_decompress(packed, len(packed), to.ctypes.data, size, ctypes.addressof(error))
    assert (to[size:] == 0x5C).all(), "it writes behind the end"
    if failed:
        raise ValueError(error.value.decode())
    return to[:size].tobytes()


def blocks():
    rng = np.random.default_rng(9)
    yield from (rng.bytes(n) for n in (0, 1, 59, 60, 61, 62, 255, 256, 257, 65535, 65536, 65537, 200_000))
    yield from (rng.bytes(k) * (1000 // k) for k in range(1, 40))  # repeats of every distance
    yield from (rng.integers(0, 3, n).astype("u1").tobytes() for n in range(1, 3000, 61))
    far = rng.bytes(3000)
    yield from (far + rng.bytes(n) + far for n in (10, 2047, 2048, 40_000))
    yield bytes(1_000_000)


def test_snappy():
    for block in blocks():
        packed = pa.compress(block, codec="snappy", asbytes=True)
        assert unpack(packed, len(block)) == block


@pytest.mark.parametrize(
    "packed, wanted",
    [
        (b"\x05\x10hello", b"hello"),
        (b"\x0c\x08abc\x15\x03", b"abc" * 4),
        (b"\x0c\x08abc\x22\x03\x00", b"abc" * 4),
        (b"\x0c\x08abc\x23\x03\x00\x00\x00", b"abc" * 4),
        (b"\x03\xf0\x02abc", b"abc"),
        (b"\x03\xf4\x02\x00abc", b"abc"),
        (b"\x03\xf8\x02\x00\x00abc", b"abc"),
        (b"\x03\xfc\x02\x00\x00\x00abc", b"abc"),
    ],
    ids=str,
)
def test_every_form_of_snappy(packed, wanted):
    assert unpack(packed, len(wanted)) == wanted == pa.decompress(packed, len(wanted), "snappy", asbytes=True)


@pytest.mark.parametrize(
    "packed, size",
    [
        (b"", 0),
        (b"\x05\x10hell", 5),
        (b"\x05\x10hello", 4),
        (b"\x06\x10hello", 6),
        (b"\x04\x10hello", 4),
        (b"\x0c\x08abc\x15\x04", 12),
        (b"\x0c\x08abc\x15\x00", 12),
        (b"\x0b\x08abc\x15\x03", 11),
        (b"\x0c\x08abc\x22\x03", 12),
        (b"\x05\xfc\xff\xff\xff\xffhello", 5),
        (b"\xff\xff\xff\xff\xff\x01", 5),
    ],
    ids=str,
)
def test_damaged_snappy(packed, size):
    with pytest.raises(ValueError, match="it can't be decompressed: "):
        unpack(packed, size)
