# SPDX-License-Identifier: Apache-2.0
"""readers.caffe and its LMDB files: compared with py-lmdb and handmade messages, and errors for damaged files."""

import os
import struct

import numpy as np
import pytest

from optional_packages import Package, needs
from penstock import fn, pipeline_def
from penstock.operators.read._table import scan

lmdb = Package("lmdb")
pytestmark = needs("lmdb")


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    """An integer or bytes in protobuf's wire format."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2**64)
    return varint(number << 3 | 2) + varint(len(value)) + value


def datum(data=None, label=None, encoded=None, shape=(), floats=b""):
    out = b"".join(field(number, n) for number, n in zip((2, 3, 1), shape))
    out += field(4, data) if data is not None else b""
    out += field(5, label) if label is not None else b""
    out += field(6, floats) if floats else b""
    return out + (field(7, int(encoded)) if encoded is not None else b"")


def write(folder, records, **options):
    with lmdb.open(str(folder), map_size=1 << 30, **options) as env, env.begin(write=True) as txn:
        for key, value in records:
            txn.put(key, value)
    return str(folder)


def values(path):
    columns = {"offset": "i8", "length": "i8", "key_end": "i8", "keys": "u1"}
    t = scan("lmdb_values", os.fsencode(path), **columns)
    with open(path, "rb") as f:
        content = f.read()
    begins = [0, *t["key_end"].tolist()]
    keys = [t["keys"][a:b].tobytes() for a, b in zip(begins, begins[1:])]
    return [(k, content[o : o + n]) for k, o, n in zip(keys, t["offset"].tolist(), t["length"].tolist())]


@pytest.mark.parametrize("n, most", [(0, 0), (1, 10), (5, 3000), (300, 20), (5000, 30), (200, 20000), (3000, 5000)])
def test_all_values_are_found(tmp_path, n, most):
    """In the order of the keys: values inside pages and on their own pages, in trees of several levels."""
    rng = np.random.default_rng(n)
    records = {rng.bytes(int(rng.integers(1, 400))): rng.bytes(int(rng.integers(0, most + 1))) for _ in range(n)}
    path = write(tmp_path / "db", records.items())
    assert values(path + "/data.mdb") == sorted(records.items())


def test_after_changes(tmp_path):
    """The later of two transactions is used, and free pages are not read."""
    path = write(tmp_path / "db", [(b"%04d" % i, b"x" * i) for i in range(2000)])
    with lmdb.open(path, map_size=1 << 30) as env:
        with env.begin(write=True) as txn:
            for i in range(0, 2000, 3):
                txn.delete(b"%04d" % i)
        with env.begin(write=True) as txn:
            txn.put(b"0001", b"other" * 3000)
        with env.begin() as txn:
            wanted = [(bytes(k), bytes(v)) for k, v in txn.cursor()]
    assert values(path + "/data.mdb") == wanted


def build(batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        outputs = fn.readers.caffe(name="r", **kwargs)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipe()


def read(**kwargs):
    pipe = build(**kwargs)
    return [[np.array(x.at(0)) for x in pipe.run()] for _ in range(pipe.epoch_size("r"))]


def test_pictures_and_labels(tmp_path):
    rng = np.random.default_rng(0)
    pictures = [rng.bytes(int(rng.integers(1, 9000))) for _ in range(30)]
    labels = [0, 1, -1, 2**31 - 1, -(2**31), *range(25)]
    path = write(tmp_path / "db", [(b"%08d" % i, datum(p, n)) for i, (p, n) in enumerate(zip(pictures, labels))])
    got = read(path=path)
    assert [bytes(x) for x, _ in got] == pictures and [n.tolist() for _, n in got] == [[n] for n in labels]
    assert got[0][0].dtype == "u1" and got[0][1].dtype == "i4"
    assert [bytes(x) for (x,) in read(path=path + "/data.mdb", label_available=False)] == pictures
    assert [n.tolist() for (n,) in read(path=path, image_available=False)] == [[n] for n in labels]
    picture, label = build(path=path).run()
    assert picture[0].source_info() == label[0].source_info() == f"{path} at key 00000000"


def test_pictures_as_they_are(tmp_path):
    x = np.arange(60, dtype="u1").reshape(4, 5, 3)
    path = write(tmp_path / "db", [(b"0", datum(x.tobytes(), 1, False, x.shape))])
    ((picture, _),) = read(path=path)
    np.testing.assert_array_equal(picture, x)


def test_several_databases(tmp_path):
    paths = [write(tmp_path / f"{k}", [(b"%d" % i, datum(b"%d%d" % (k, i), i)) for i in range(3)]) for k in range(3)]
    assert [bytes(x) for x, _ in read(path=paths)] == [b"%d%d" % (k, i) for k in range(3) for i in range(3)]


@pytest.mark.parametrize(
    "record, error",
    [
        (datum(None, 1), "the Datum has no data"),
        (datum(None, 1, floats=bytes(8)), "the Datum has float_data"),
        (datum(b"x"), "the Datum has no label"),
        (datum(bytes(59), 1, False, (4, 5, 3)), "59 bytes of data for a picture of height 4, width 5 and 3 channels"),
        (datum(bytes(4), 1, False, (-2, -2, 1)), "4 bytes of data for a picture of height -2"),
        (datum(b"x" * 100, 1)[:50], "has 100 bytes, of which only"),
        (field(4, b"x") + b"\x28", "within a number"),
        (field(4, b"x") + b"\x28" + b"\xff" * 11, "within a number"),
        (b"\x00\x01", "no field of protobuf"),
        (b"\x22" + varint(2**63) + b"x", "of which only 1 are there"),
        (b"\x23", "the unknown type 3"),
        (field(4, 7), "field 4 of the message has the type 0; 2 is expected"),
        (field(5, b"x"), "field 5 of the message has the type 2; 0 is expected"),
        (b"", "the Datum has no data"),
    ],
    ids=range(14),
)
def test_damaged_records(tmp_path, record, error):
    path = write(tmp_path / "db", [(b"a", record), (b"b", datum(b"good", 7))])
    with pytest.raises(RuntimeError, match=error) as e:
        build(path=path, batch_size=2).run()
    assert f"{path}/data.mdb, record 0, key 'a'" in str(e.value)
    picture, _ = build(path=path, batch_size=2, on_error="skip").run()
    assert len(picture) == 1 and bytes(picture.at(0)) == b"good"


def damaged(content, at, value):
    return content[:at] + value + content[at + len(value) :]


PAGE, META = 4096, 16
U64 = struct.Struct("<Q").pack


@pytest.mark.parametrize(
    "damage, error",
    [
        (lambda b: b"", "lacks the magic number"),
        (lambda b: b"x" * 9000, "lacks the magic number"),
        (lambda b: damaged(b, META + 24, b"\x01\x00\x00\x00"), "pages have 1 bytes"),
        (lambda b: damaged(damaged(b, META + 4, b"\x09"), PAGE + META + 4, b"\x09"), "data version 9"),
        (lambda b: b[: 2 * PAGE], "is referred to, but the file ends before it"),
        (lambda b: b.replace(b[META + 72 + 32 : META + 72 + 40], U64(7)), "entries|damaged|number|deep"),
        (lambda b: roots(b, 0), "is neither a branch nor a leaf"),
        (lambda b: roots(b, 2**63), "but the file ends before it"),
        (lambda b: flags(b, 4), "keeps several values for a key"),
        (lambda b: depths(b, 1), "not at the depth"),
        (lambda b: depths(b, 60000), "60000 pages deep"),
        (lambda b: circle(b), "is referred to twice|not at the depth|has another page's number"),
    ],
    ids=range(12),
)
def test_damaged_databases(tmp_path, damage, error):
    path = write(tmp_path / "db", [(b"%08d" % i, datum(b"x" * 100, i)) for i in range(500)])
    file = tmp_path / "db" / "data.mdb"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=error) as e:
        build(path=path).build()
    assert str(file) in str(e.value)


def both_metas(b, at, value):
    return damaged(damaged(b, META + at, value), PAGE + META + at, value)


def roots(b, page):
    return both_metas(b, 72 + 40, U64(page))


def flags(b, value):
    return both_metas(b, 72 + 4, bytes([value, 0]))


def depths(b, depth):
    return both_metas(b, 72 + 6, struct.pack("<H", depth))


def circle(b):
    """Makes the same page every child of the root."""
    root = min(struct.unpack_from("<Q", b, META + 72 + 40)[0], struct.unpack_from("<Q", b, PAGE + META + 112)[0])
    (lower,) = struct.unpack_from("<H", b, root * PAGE + 12)
    nodes = struct.unpack_from(f"<{(lower - 16) // 2}H", b, root * PAGE + 16)
    first = b[root * PAGE + nodes[0] : root * PAGE + nodes[0] + 6]
    for node in nodes:
        b = damaged(b, root * PAGE + node, first)
    return b


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"path": []}, "'path' is an empty list"),
        ({"path": "/no/such"}, "/no/such"),
        ({"image_available": False, "label_available": False}, "nothing is left"),
    ],
    ids=str,
)
def test_errors(tmp_path, kwargs, error):
    path = write(tmp_path / "db", [(b"a", datum(b"x", 1))])
    with pytest.raises((ValueError, RuntimeError), match=error):
        build(**({"path": path} | kwargs)).build()


def test_empty_database(tmp_path):
    with pytest.raises(ValueError, match="there are no records"):
        build(path=write(tmp_path / "db", [])).build()


def test_nodes_that_overlap(tmp_path):
    """Otherwise a small file could claim gigabytes of keys."""
    path = write(tmp_path / "db", [(b"%08d" % i, b"x" * 90) for i in range(30)])
    file = tmp_path / "db" / "data.mdb"
    content = file.read_bytes()
    root = min(
        struct.unpack_from("<Q", content, META + 112)[0], struct.unpack_from("<Q", content, PAGE + META + 112)[0]
    )
    (lower,) = struct.unpack_from("<H", content, root * PAGE + 12)
    n = (lower - 16) // 2
    lowest = min(struct.unpack_from(f"<{n}H", content, root * PAGE + 16))
    content = damaged(content, root * PAGE + 16, struct.pack("<H", lowest) * n)
    content = damaged(content, root * PAGE + lowest + 6, struct.pack("<H", 3000))
    file.write_bytes(content)
    with pytest.raises(ValueError, match="has nodes that overlap"):
        build(path=path).build()
