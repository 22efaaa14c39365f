# SPDX-License-Identifier: Apache-2.0
"""readers.mxnet: handmade records are read unchanged; damaged files are errors with the position."""

import struct

import numpy as np
import pytest

from penstock import fn, ops, pipeline_def
from penstock.cli.indices import rec2idx
from penstock.operators.read._indices import scan_file

MAGIC = struct.pack("<I", 0xCED7230A)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def part(kind, data):
    return MAGIC + struct.pack("<I", kind << 29 | len(data)) + data + bytes(-len(data) % 4)


def record(data):
    """Data is split at each magic number at a multiple of four bytes, and the magic number is omitted."""
    parts, begin = [], 0
    for at in range(0, len(data) - 3, 4):
        if data[at : at + 4] == MAGIC:
            parts.append(data[begin:at])
            begin = at + 4
    parts.append(data[begin:])
    kinds = [0] if len(parts) == 1 else [1, *[2] * (len(parts) - 2), 3]
    return b"".join(map(part, kinds, parts))


def image(data, *labels):
    if len(labels) == 1:
        return struct.pack("<IfQQ", 0, labels[0], 5, 6) + data
    return struct.pack("<IfQQ", len(labels), 0, 5, 6) + np.array(labels, "<f4").tobytes() + data


def write(path, contents):
    records = [record(c) for c in contents]
    path.write_bytes(b"".join(records))
    return str(path), np.cumsum([0, *map(len, records)]).tolist()


def build(n=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=n, num_threads=2, on_error=on_error, prefetch_queue_depth=1)
    def pipe():
        return tuple(fn.readers.mxnet(name="r", **kwargs))

    return pipe()


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    made = []
    for _ in range(40):
        words = rng.integers(0, 256, int(rng.integers(0, 30_000)), "u1")
        data = bytes(words)
        if rng.random() < 0.5:
            data = data[: len(data) // 8 * 4] + MAGIC * int(rng.integers(1, 3)) + data
        made.append((data, rng.standard_normal(int(rng.integers(1, 5))).astype("f4")))
    return made


@pytest.mark.parametrize("has_index", [False, True])
def test_records(tmp_path, samples, has_index):
    kwargs = {"path": [], "index_path": []}
    for k, some in enumerate((samples[:30], samples[30:])):
        path, begins = write(tmp_path / f"{k}.rec", [image(d, *map(float, n)) for d, n in some])
        assert scan_file("recordio_records", path)[:, 0].tolist() == begins[:-1]
        kwargs["path"].append(path)
        kwargs["index_path"].append(str(tmp_path / f"{k}.idx"))
        (tmp_path / f"{k}.idx").write_text("".join(f"{i}\t{b}\n" for i, b in enumerate(begins[:-1])))
    pipe = build(8, **(kwargs if has_index else {"path": kwargs["path"]}))
    assert pipe.epoch_size("r") == 40
    for k in range(0, 40, 8):
        contents, labels = pipe.run()
        for i, (data, numbers) in enumerate(samples[k : k + 8]):
            assert bytes(contents.at(i)) == data
            np.testing.assert_array_equal(labels.at(i), numbers, strict=True)


DAMAGED = {
    "magic": (lambda c, b: c[: b[1]] + b"xxxx" + c[b[1] + 4 :], "no record begins here"),
    "kind": (lambda c, b: c[: b[1] + 7] + b"\x40" + c[b[1] + 8 :], "no record begins here"),
    "never ends": (lambda c, b: c[: b[1] + 7] + b"\x20" + c[b[1] + 8 :], "end within it"),
    "too long": (lambda c, b: c[: b[1] + 4] + b"\xff\xff\xff\x1f" + c[b[1] + 8 :], "one of its parts 536870911"),
    "labels": (lambda c, b: c[: b[1] + 8] + b"\xff\xff\xff\xff" + c[b[1] + 12 :], "4294967295 labels"),
    "no image": (lambda c, b: c[: b[1] + 4] + struct.pack("<I", 23) + c[b[1] + 8 :], "it has 23 bytes"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_records(tmp_path, name):
    damage, text = DAMAGED[name]
    path, begins = write(tmp_path / "f", [image(b"abcd", 1.0)] * 3)
    (tmp_path / "f").write_bytes(damage((tmp_path / "f").read_bytes(), begins))
    (tmp_path / "i").write_text("".join(f"{i}\t{b}\n" for i, b in enumerate(begins[:-1])))
    pipe = build(3, "skip", path=path, index_path=str(tmp_path / "i"))
    assert len(pipe.run()[0]) == 2
    error = pipe.errors()[0]
    assert text in error.reason and f"record 1, offset {begins[1]}" in error.source


def test_files_that_are_none(tmp_path):
    path, begins = write(tmp_path / "f", [image(b"abcd", 1.0)] * 3)
    content = (tmp_path / "f").read_bytes()
    for cut in (1, 30, 33):
        (tmp_path / "f").write_bytes(content[:-cut])
        with pytest.raises((ValueError, RuntimeError), match=f"f: the record at byte {begins[2]} is cut off"):
            build(path=path).build()
    (tmp_path / "f").write_bytes(b"GIF89a, which is none")
    with pytest.raises((ValueError, RuntimeError), match="this is no RecordIO file"):
        build(path=path).build()
    (tmp_path / "f").write_bytes(content)
    (tmp_path / "i").write_text(f"0\t0\n1\t{len(content) + 8}\n")
    with pytest.raises((ValueError, RuntimeError), match="index .* does not fit the file"):
        build(path=path, index_path=str(tmp_path / "i")).build()


def test_rec2idx(tmp_path):
    path, begins = write(tmp_path / "f", [image(b"abcd" * i, 1.0) for i in range(30)])
    assert rec2idx([path, str(tmp_path / "i")]) == 0
    assert (tmp_path / "i").read_text() == "".join(f"{i}\t{b}\n" for i, b in enumerate(begins[:-1]))


def test_faces(tmp_path):
    path, _ = write(tmp_path / "f", [image(b"abcd", 1.0)])

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        with pytest.warns(DeprecationWarning):
            old = fn.mxnet_reader(path=path)
        return *ops.readers.MXNet(path=path)(), *old

    assert [o.at(0).tolist() for o in pipe().run()] == [[97, 98, 99, 100], [1.0]] * 2
