# SPDX-License-Identifier: Apache-2.0
"""readers.tfrecord: handmade examples are read unchanged; damaged files are errors with the position."""

import os
import re
import struct

import numpy as np
import pytest
import tfrecord_files as tf

import penstock.tfrecord as tfrec
from penstock import Pipeline, fn, ops, pipeline_def
from penstock.cli.indices import tfrecord2idx
from penstock.core import kernels
from penstock.operators.read import _indices, _kept_tables

STRING, INT, FLOAT = tfrec.string, tfrec.int64, tfrec.float32


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "penstock" / "tables"


def build(path, features, n=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=n, num_threads=2, on_error=on_error, prefetch_queue_depth=1)
    def pipe():
        return tuple(fn.readers.tfrecord(path=path, features=features, name="r", **kwargs).values())

    return pipe()


def one(path, feature, name="x"):
    """A feature of the only example in a file."""
    return build(path, {name: feature}).run()[0].at(0)


def test_examples(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(40):
        rows.append(
            {
                "image": rng.bytes(int(rng.integers(0, 100_000))),
                "label": int(rng.integers(-(2**63), 2**63)),
                "boxes": rng.standard_normal((int(rng.integers(0, 5)), 4)).astype("f4"),
                "ids": rng.integers(-9, 9, int(rng.integers(0, 300))),
                "pair": rng.standard_normal(2).astype("f4"),
            }
        )
    examples = [
        tf.example(
            {
                "unused": tf.strings(b"?" * 50),
                "image": tf.strings(r["image"]),
                "label": tf.integers(r["label"]),
                "boxes": tf.floats(*r["boxes"].ravel()),
                "ids": tf.integers(*map(int, r["ids"])),
                "pair": tf.floats(*r["pair"]),
            }
        )
        for r in rows
    ]
    a = tf.write(tmp_path / "a.tfrecord", examples[:25], tmp_path / "a.idx")
    b = tf.write(tmp_path / "b.tfrecord", examples[25:], tmp_path / "b.idx")
    features = {
        "image": tfrec.FixedLenFeature((), STRING, ""),
        "label": tfrec.FixedLenFeature([1], INT, -1),
        "boxes": tfrec.VarLenFeature([4], FLOAT, 0.0),
        "ids": tfrec.VarLenFeature(INT, 0),
        "pair": tfrec.FixedLenFeature([2], FLOAT, 0.0),
    }
    for index in (None, [str(tmp_path / "a.idx"), str(tmp_path / "b.idx")]):
        pipe = build([a, b], features, 8, index_path=index)
        assert pipe.epoch_size("r") == 40
        for k in range(0, 40, 8):
            image, label, boxes, ids, pair = pipe.run()
            for i, r in enumerate(rows[k : k + 8]):
                assert bytes(image.at(i)) == r["image"]
                assert label.at(i).tolist() == [r["label"]] and label.at(i).dtype == np.int64
                np.testing.assert_array_equal(boxes.at(i), r["boxes"], strict=True)
                np.testing.assert_array_equal(ids.at(i), r["ids"], strict=True)
                np.testing.assert_array_equal(pair.at(i), r["pair"], strict=True)
            assert pair.is_dense_tensor()
        assert "a.tfrecord at index 0" in build([a, b], features, index_path=index).run()[0][0].source_info()


FIXED, VAR = tfrec.FixedLenFeature, tfrec.VarLenFeature
ANY = tf.integers(1, 2, 3, 4, 5, 6)
GOOD = {
    "scalar": (tf.integers(-5), FIXED([], INT, 0), np.int64(-5)),
    "float": (tf.floats(1.5), FIXED([], FLOAT, 0.0), np.float32(1.5)),
    "matrix": (ANY, FIXED([2, 3], INT, 0), np.arange(1, 7).reshape(2, 3)),
    "not packed": (tf.integers(1, -2, 300, packed=False), VAR(INT, 0), np.array([1, -2, 300])),
    "floats not packed": (tf.floats(1, -2, 0.5, packed=False), VAR(FLOAT, 0.0), np.float32([1, -2, 0.5])),
    "both": (tf.integers(1, 2) + tf.integers(3, packed=False), VAR(INT, 0), np.array([1, 2, 3])),
    "lists of a kind add up": (tf.strings(b"a") + tf.strings(b"b"), FIXED([2], STRING, ""), np.uint8([[97], [98]])),
    "the last kind counts": (tf.integers(1) + tf.floats(2) + tf.floats(3), VAR(FLOAT, 0.0), np.float32([2, 3])),
    "partial shape": (ANY, VAR([1, 3], INT, 0), np.arange(1, 7).reshape(2, 1, 3)),
    "partial shape of one": (ANY, VAR([], INT, 0), np.arange(1, 7)),
    "string": (tf.strings(b"abc"), FIXED([1], STRING, ""), np.uint8([97, 98, 99])),
    "first string": (tf.strings(b"abc", b"d"), FIXED([], STRING, ""), np.uint8([97, 98, 99])),
    "strings": (tf.strings(b"abc", b"", b"d"), VAR(STRING, ""), np.uint8([[97, 98, 99], [0, 0, 0], [100, 0, 0]])),
    "rows of strings": (tf.strings(b"a", b"b", b"c", b""), VAR([2], STRING, ""), np.uint8([[[97], [98]], [[99], [0]]])),
    "no strings": (tf.strings(), VAR(STRING, ""), np.zeros((0, 0), "u1")),
    "empty string": (tf.strings(b""), FIXED([], STRING, "default"), np.zeros(0, "u1")),
    "default": (tf.integers(), FIXED([2], INT, 7), np.array([7, 7])),
    "default of nothing": (b"", FIXED([2], FLOAT, 0.5), np.float32([0.5, 0.5])),
    "default string": (b"", FIXED([], STRING, "ab"), np.uint8([97, 98])),
    "default strings": (b"", FIXED([2], STRING, "ab"), np.uint8([[97, 98], [97, 98]])),
    "empty list of another kind": (tf.floats(), FIXED([], INT, -1), np.int64(-1)),
    "nothing": (b"", VAR([4], FLOAT, 9.0), np.zeros((0, 4), "f4")),
    "shape of none": (tf.integers(), VAR([0], INT, 0), np.zeros((0, 0), "i8")),
    "unknown fields": (
        tf.varint(9 << 3) + b"\x05" + tf.varint(10 << 3 | 1) + bytes(8) + tf.varint(11 << 3 | 5) + bytes(4)
        + tf.field(12, b"xy") + tf.integers(4),
        FIXED([], INT, 0), np.int64(4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_forms_of_features(tmp_path, name):
    value, feature, expected = GOOD[name]
    data = tf.example({"a": tf.floats(1), "x": value, "xx": tf.strings(b"?")})
    got = one(tf.write(tmp_path / "f", [data]), feature)
    np.testing.assert_array_equal(got, expected, strict=True)


def test_missing_feature_and_repeated_names(tmp_path):
    path = tf.write(tmp_path / "f", [tf.example({"a": tf.integers(1)})])
    assert one(path, FIXED([], INT, 8)) == 8 and one(path, VAR(INT, 8)).shape == (0,)
    twice = tf.example({"x": tf.integers(1)}) + tf.example({"x": tf.integers(2)})  # the last one counts
    assert one(tf.write(tmp_path / "g", [twice]), FIXED([], INT, 0)) == 2


BAD = {
    "other kind": (tf.floats(1), FIXED([], INT, 0), "holds values of type float32; int64 was asked for"),
    "too many": (ANY, FIXED([5], INT, 0), "has 6 values, its shape 5"),
    "too few": (tf.floats(1, 2, 3), FIXED([2, 2], FLOAT, 0.0), "has 3 values, its shape 4"),
    "no multiple": (ANY, VAR([4], INT, 0), "6 values, which are no multiple of the 4"),
    "cut off": (tf.integers(1, 2, 3)[:-1], VAR(INT, 0), "of which only"),
    "odd floats": (tf.field(2, tf.field(1, b"12345")), VAR(FLOAT, 0.0), "odd bytes"),
    "endless number": (tf.field(3, tf.field(1, b"\xff" * 11)), VAR(INT, 0), "damaged, within a number"),
    "length beyond": (tf.varint(3 << 3 | 2) + tf.varint(2**63), VAR(INT, 0), "of which only"),
    "group": (tf.varint(9 << 3 | 3), VAR(INT, 0), "unknown type 3"),
    "no type": (tf.varint(1 << 3 | 7), VAR(INT, 0), "unknown type 7"),
    "no number": (b"\x00\x01", VAR(INT, 0), "no field of protobuf"),
    "padding": (tf.strings(bytes(2**20), *[b""] * 20_000), VAR(STRING, ""), "too much for one array"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_examples(tmp_path, name):
    value, feature, text = BAD[name]
    good = tf.example({"x": {INT: tf.integers, FLOAT: tf.floats, STRING: tf.strings}[feature.dtype]()})
    path = tf.write(tmp_path / "f", [good, tf.field(1, tf.entry("x", value)), good])
    with pytest.raises(RuntimeError, match=text):
        build(path, {"x": feature}, 3).run()
    pipe = build(path, {"x": feature}, 3, "skip")
    assert len(pipe.run()[0]) == 2 and [e.sample for e in pipe.errors()] == [1]


def test_bad_records_say_where(tmp_path):
    path = tmp_path / "f"
    examples = [tf.example({"x": tf.integers(i)}) for i in range(6)]
    tf.write(path, examples, tmp_path / "idx")
    size = len(tf.record(examples[0]))
    content = bytearray(path.read_bytes())
    content[3 * size + size - 5] ^= 1  # of the number, so that the example stays one
    path.write_bytes(content)
    feature = {"x": FIXED([], INT, 0)}
    pipe = build(str(path), feature, 6, "skip")
    assert pipe.run()[0].as_array().tolist() == [0, 1, 2, 4, 5]
    error = pipe.errors()[0]
    assert "checksum of the record is wrong" in error.reason and f"{path}, record 3, offset {3 * size}" in error.source
    assert [int(x) for x in build(str(path), feature, 6, verify_checksums=False).run()[0].as_array()] == [
        0,
        1,
        2,
        2,
        4,
        5,
    ]
    # An index of another file
    (tmp_path / "idx").write_text(f"0 {size}\n{size} {size + 1}\n4 {size}\n")
    with pytest.raises(RuntimeError, match="by the index .*: the index is that of another file"):
        build(str(path), feature, 2, index_path=str(tmp_path / "idx")).run()
    with pytest.raises(RuntimeError, match="no record begins here"):
        build(str(path), feature, 3, index_path=str(tmp_path / "idx"), shard_id=2, num_shards=3).run()


INDICES = {
    "beyond": ("0 30\n5000 9\n", "does not fit the file .*: its record 1 has 9 bytes from byte 5000 on"),
    "overflow": (f"9 {2**63 - 1}\n", "does not fit the file"),
    "large": (f"0 {2**63}\n", "line 1 of the index .* '9223372036854775808'"),
    "words": ("0 30\n30 x\n", "line 2 of the index .* something else than integers: 'x'"),
    "odd": ("0 30 30", "is cut off: it has 3 numbers"),
    "negative": ("0 -30\n", "'-30'"),
    "empty": ("\n", "there are no records in"),
}


@pytest.mark.parametrize("name", INDICES)
def test_bad_indices(tmp_path, name):
    text, reason = INDICES[name]
    path = tf.write(tmp_path / "f", [tf.example({"x": tf.integers(i)}) for i in range(6)])
    (tmp_path / "idx").write_text(text)
    with pytest.raises((ValueError, RuntimeError), match=reason):
        build(path, {"x": FIXED([], INT, 0)}, index_path=[str(tmp_path / "idx")]).build()


def test_scan(tmp_path):
    rng = np.random.default_rng(3)
    sizes = [int(n) for n in rng.choice([0, 1, 30, 4000, 70_000, 200_000], 300)]
    path = tmp_path / "f"
    path.write_bytes(b"".join(_framed(rng.bytes(n)) for n in sizes))
    rows = _indices.scan_file("tfrecord_records", str(path))
    begins = np.concatenate([[0], np.cumsum([n + 16 for n in sizes])])
    assert rows.tolist() == [[int(b), n + 16] for b, n in zip(begins, sizes)]
    content = path.read_bytes()
    for cut in (1, 4, 11, 12, 15):
        path.write_bytes(content[:-cut] if sizes[-1] else content[: -min(cut, 15)])
        with pytest.raises(ValueError, match=f"{path}: the record at byte {begins[-2]} is cut off"):
            _indices.scan_file("tfrecord_records", str(path))
    path.write_bytes(b"GIF89a" + content)
    with pytest.raises(ValueError, match="no TFRecord file"):
        _indices.scan_file("tfrecord_records", str(path))
    length = struct.pack("<Q", 2**63 + 5)
    path.write_bytes(length + tf.masked(length) + content)
    with pytest.raises(ValueError, match="cut off"):
        _indices.scan_file("tfrecord_records", str(path))


def _framed(data):
    length = struct.pack("<Q", len(data))
    return length + tf.masked(length) + data + bytes(4)


def test_what_was_found_is_kept(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(_kept_tables, "_WORTH_IT_S", 0)
    feature = {"x": FIXED([], INT, 0)}
    paths = [tf.write(tmp_path / n, [tf.example({"x": tf.integers(i)}) for i in range(6)]) for n in "fg"]
    build(paths, feature).run()
    assert len(os.listdir(cache)) == 1
    monkeypatch.setattr(_indices, "_scan", None)
    pipe = build(paths, feature, 12)
    assert pipe.run()[0].as_array().tolist() == [*range(6), *range(6)]
    os.utime(paths[1], ns=(1, 1))
    with pytest.raises(TypeError):  # looked for again
        build(paths, feature).run()


def test_checksums_of_any_length():
    lib = kernels.library()
    rng = np.random.default_rng(0)
    assert tf.crc32c(b"123456789") == 0xE3069283  # the published check value
    for n in [*range(40), 1023, 1024, 3071, 3072, 3073, 6144, 10_007]:
        data = rng.bytes(n)
        begin = int(rng.integers(0, 8))
        array = np.frombuffer(bytes(begin) + data + b"\0", "u1")[begin:]
        for by_tables in (0, 1):
            assert lib.checksum_crc32c(array.ctypes.data, n, by_tables) == tf.crc32c(data)


def test_tfrecord2idx(tmp_path, capsys):
    path = tf.write(tmp_path / "f", [tf.example({"x": tf.integers(i)}) for i in range(600)], tmp_path / "expected")
    tfrecord2idx([path, str(tmp_path / "idx")])
    assert (tmp_path / "idx").read_text() == (tmp_path / "expected").read_text()
    assert tfrecord2idx([path]) and "usage: tfrecord2idx" in capsys.readouterr().err
    (tmp_path / "g").write_bytes(b"no records at all")
    assert tfrecord2idx([str(tmp_path / "g"), str(tmp_path / "none")]) and not (tmp_path / "none").exists()
    assert "no TFRecord file" in capsys.readouterr().err


def test_faces(tmp_path):
    path = tf.write(tmp_path / "f", [tf.example({"x": tf.integers(i)}) for i in range(4)])
    features = {"x": FIXED([1], INT, 0)}

    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        reader = ops.readers.TFRecord(path=path, features=features)
        return reader()["x"], fn.readers.tfrecord(path=[path], features=features)["x"]

    assert [o.as_array().ravel().tolist() for o in pipe().run()] == [[0, 1, 2, 3]] * 2
    for wrong, text in [
        ({}, "at least one feature"),
        ({"x": 1}, "feature 'x' has to be made by"),
        ({1: features["x"]}, "names as keys"),
        ([features["x"]], "takes a dictionary"),
    ]:
        with pytest.raises(TypeError, match=text):
            build(path, wrong)
    with pytest.raises(ValueError, match="2 paths of indices for 1 files"):
        build(path, features, index_path=["a", "b"])
    with pytest.raises((OSError, RuntimeError), match="can't be opened: No such file.*nowhere"):
        build(str(tmp_path / "nowhere"), features).build()


def test_serialized(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(tf.record(tf.example({"i": tf.integers(k, k)})) for k in range(4)))
    features = {
        "i": tfrec.FixedLenFeature([2], INT, 0),
        "s": tfrec.FixedLenFeature([], STRING, b"\xff?"),
        "f": tfrec.VarLenFeature([], FLOAT, 0.5),
    }

    @pipeline_def(batch_size=4, num_threads=1)
    def pipe():
        return tuple(fn.readers.tfrecord(path=str(path), features=features).values())

    text = pipe().serialize()
    again = Pipeline.deserialize(text)
    assert again.serialize() == text
    for a, b in zip(again.run(), pipe().run(), strict=True):
        assert [np.array(x).tolist() for x in a] == [np.array(x).tolist() for x in b]
    for wrong in (b'"dtype":7', b'"shape":[-1]', b'"default":"x"', b'"shape":"ab"'):
        name = wrong.split(b":")[0] + b":"
        begin = text.index(name)
        end = begin + re.search(rb",\"|}", text[begin:]).start()
        with pytest.raises((ValueError, TypeError)):
            Pipeline.deserialize(text[:begin] + wrong + text[end:])
