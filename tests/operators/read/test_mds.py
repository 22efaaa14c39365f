# SPDX-License-Identifier: Apache-2.0
"""readers.mds: shards of MosaicML Streaming, and shards written here by the definition."""

import base64
import bz2
import gzip
import json
import os
import sys

import numpy as np
import pytest

from penstock import fn, pipeline_def

# What MDSWriter of mosaicml-streaming 0.13.0 wrote of
#   {"image": b"picture" * (i + 1), "label": 5 - 9 * i, "vector": np.arange(3 + i, dtype="i2"),
#    "any": np.full((1, 2 + i), i / 2, "f4")} for i in (0, 1)
# with columns={"image": "jpeg", "label": "int", "vector": "ndarray:int16", "any": "ndarray"}, compression="zstd".
WRITTEN = (
    "KLUv/WB0AM0HABKNLC2AqWkMmAmZkAmZkClicBaRfa+RfQ8Sa7hst8EYwIpAGQ6uAvskAW/0UBk1slMnI69XlAoKhT8R+An+gpHXJ8qLN6n67DSy"
    "GO1n/AD/wMTBRGCaxqCRwGxc6HjV0gd1DwrF6uKUHKBKq8acJqWl9M0pNmyBkJLV0inV50HA1+Dgi1xc6V50ki0MjWlUuU6VG73pobGlRbg5HSTb"
    "AnMajeRC0iOfQ0YKSk+T+FV/Nb8CfiQcALiBKjmsymBHdKnGAuPEc2gixcA0N2ov6wJMQELTRo2VDNr98ACWcVNGAcPAiguLaatMc20YCEyIQLBn"
    "AhUbNqtAAQ=="
)
INDEX = {
    "column_encodings": ["ndarray", "jpeg", "int", "ndarray:int16"],
    "column_names": ["any", "image", "label", "vector"],
    "column_sizes": [None, None, 8, None],
    "compression": "zstd",
    "format": "mds",
    "raw_data": {"basename": "shard.00000.mds", "bytes": 372, "hashes": {}},
    "samples": 2,
    "zip_data": {"basename": "shard.00000.mds.zstd", "bytes": 259, "hashes": {}},
}
COLUMNS = {"image": "jpeg", "label": "int", "text": "str", "score": "float16", "matrix": "ndarray:int16:2,3"}
SIZES = {"int": 8, "float16": 2, "ndarray:int16:2,3": 12}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "penstock" / "shards"


def samples(n=10):
    for i in range(n):
        matrix = np.arange(6, dtype="i2").reshape(2, 3) - i
        yield {"image": b"%d" % i * i, "label": i - 3, "text": "ü" * i, "score": np.float16(i / 4), "matrix": matrix}


def encode(sample):
    """A sample by the definition: the sizes of columns without a fixed size, then the columns in the order of their
    names."""
    as_bytes = {
        "image": sample["image"],
        "label": np.int64(sample["label"]).tobytes(),
        "text": sample["text"].encode(),
        "score": sample["score"].tobytes(),
        "matrix": sample["matrix"].tobytes(),
    }
    sizes = [len(as_bytes[c]) for c in sorted(COLUMNS) if COLUMNS[c] not in SIZES]
    return np.array(sizes, "u4").tobytes() + b"".join(as_bytes[c] for c in sorted(COLUMNS))


def write(folder, n=10, per_shard=4, compress=None, extension=None):
    os.makedirs(folder, exist_ok=True)
    encoded, shards = [encode(s) for s in samples(n)], []
    for k in range(0, n, per_shard):
        part = encoded[k : k + per_shard]
        config = b'{"version": 2}'
        begins = 4 * (len(part) + 2) + len(config) + np.cumsum([0, *map(len, part)])
        raw = np.array([len(part), *begins], "u4").tobytes() + config + b"".join(part)
        name = f"shard.{k // per_shard:05}.mds"
        about = {
            "column_names": sorted(COLUMNS),
            "column_encodings": [COLUMNS[c] for c in sorted(COLUMNS)],
            "column_sizes": [SIZES.get(COLUMNS[c]) for c in sorted(COLUMNS)],
            "compression": extension,
            "format": "mds",
            "raw_data": {"basename": name, "bytes": len(raw)},
            "samples": len(part),
            "zip_data": None,
        }
        if compress:
            raw, name = compress(raw), f"{name}.{extension}"
            about["zip_data"] = {"basename": name, "bytes": len(raw)}
        (folder / name).write_bytes(raw)
        shards.append(about)
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    return str(folder)


def build(path, columns=tuple(COLUMNS), batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        outputs = fn.readers.mds(path=path, columns=list(columns), name="r", **kwargs)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipe()


def read(path, columns=tuple(COLUMNS), **kwargs):
    pipe = build(path, columns, **kwargs)
    return [dict(zip(columns, (x.at(0) for x in pipe.run()))) for _ in range(pipe.epoch_size("r"))]


def check(got, wanted):
    assert bytes(got["image"]) == wanted["image"] and bytes(got["text"]).decode() == wanted["text"]
    assert got["label"].dtype == "i8" and got["label"].tolist() == [wanted["label"]]
    assert got["score"].dtype == "f2" and got["score"].tolist() == [wanted["score"]]
    assert got["matrix"].dtype == "i2" and got["matrix"].tolist() == wanted["matrix"].tolist()


def test_shards_by_the_definition(tmp_path):
    got = read(write(tmp_path / "d"))
    assert len(got) == 10
    for g, s in zip(got, samples()):
        check(g, s)


def test_shards_of_mosaicml(tmp_path):
    (tmp_path / "shard.00000.mds.zstd").write_bytes(base64.b64decode(WRITTEN))
    (tmp_path / "index.json").write_text(json.dumps({"shards": [INDEX], "version": 2}))
    for i, got in enumerate(read(str(tmp_path), ("vector", "any", "label", "image"))):
        assert bytes(got["image"]) == b"picture" * (i + 1) and got["label"].tolist() == [5 - 9 * i]
        assert got["vector"].dtype == "i2" and got["vector"].tolist() == list(range(3 + i))
        assert got["any"].dtype == "f4" and got["any"].tolist() == [[i / 2] * (2 + i)]


@pytest.mark.parametrize("compression", [None, "zstd:7", "gz", "bz2", "br:5", "snappy"])
def test_what_its_own_writer_wrote(tmp_path, compression):
    streaming = pytest.importorskip("streaming", reason="mosaicml-streaming is not installed")
    image = pytest.importorskip("PIL.Image")
    columns = {"any": "ndarray", "digits": "str_int", "meta": "json", "picture": "pil", **COLUMNS}
    more = lambda i: {
        "any": np.arange(i + 1, dtype="f4").reshape(1, -1),
        "digits": 10**20 + i,
        "meta": {"i": i},
        "picture": image.fromarray(np.full((2, 3 + i, 3), i, "u1")),
    }
    out = str(tmp_path / "d")
    with streaming.MDSWriter(out=out, columns=columns, compression=compression, size_limit=1 << 10) as writer:
        for i, s in enumerate(samples()):
            writer.write({**s, **more(i)})
    assert len(os.listdir(out)) > 3
    got = read(out, tuple(columns))
    assert len(got) == 10
    for i, (g, s) in enumerate(zip(got, samples())):
        check(g, s)
        wanted = more(i)
        assert g["any"].tolist() == wanted["any"].tolist() and int(bytes(g["digits"])) == wanted["digits"]
        assert json.loads(bytes(g["meta"])) == wanted["meta"]
        np.testing.assert_array_equal(g["picture"], np.asarray(wanted["picture"]))


@pytest.mark.parametrize("compress, extension", [(gzip.compress, "gz"), (bz2.compress, "bz2")])
def test_compressed_shards_are_unpacked_once(tmp_path, cache, compress, extension):
    path = write(tmp_path / "d", compress=compress, extension=extension)
    for g, s in zip(read(path), samples()):
        check(g, s)
    before = {f: os.stat(cache / f).st_mtime_ns for f in os.listdir(cache)}
    assert len(before) == 3
    read(path)
    assert {f: os.stat(cache / f).st_mtime_ns for f in os.listdir(cache)} == before
    write(tmp_path / "d", n=3, compress=compress, extension=extension)  # other content by the same names
    assert len(read(path)) == 3
    read(path, local=str(tmp_path / "own"))
    assert len(os.listdir(tmp_path / "own")) == 1


def test_other_compressions(tmp_path):
    path = write(tmp_path / "d", compress=lambda raw: b"x", extension="lzma")
    with pytest.raises(ValueError, match="shard.00000.mds.lzma: it is compressed by 'lzma'; zstd, gz, bz2, br and"):
        build(path).build()


def compress_by(extension):
    if extension == "snappy":
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        return lambda raw: pa.compress(raw, codec="snappy", asbytes=True)
    return pytest.importorskip("brotli", reason="brotli is not installed").compress


@pytest.mark.parametrize("extension", ["br", "snappy"])
def test_brotli_and_snappy(tmp_path, cache, extension):
    path = write(tmp_path / "d", compress=compress_by(extension), extension=extension)
    for g, s in zip(read(path), samples()):
        check(g, s)


@pytest.mark.parametrize("extension", ["br", "snappy"])
def test_damaged_brotli_and_snappy(tmp_path, cache, extension):
    compress = compress_by(extension)
    damages = {
        "ends": lambda raw: compress(raw)[:-3],
        "long": lambda raw: compress(raw + b"x"),
        "short": lambda raw: compress(raw[:-1]),
        "bomb": lambda raw: compress(bytes(4_000_000)),
        "noise": lambda raw: b"\xff" * 9,
        "nothing": lambda raw: b"",
    }
    for name, damage in damages.items():
        path = write(tmp_path / name, compress=damage, extension=extension)
        with pytest.raises(ValueError, match=f"{extension}: it (can't be decompressed|does not have)"):
            build(path).build()


def test_without_brotli(tmp_path, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "brotli", None)
    path = write(tmp_path / "d", compress=lambda raw: b"x", extension="br")
    with pytest.raises(ValueError, match="to read it, install it: pip install"):
        build(path).build()


def test_a_shard_that_lies_unpacked_beside_is_taken(tmp_path, cache):
    path = write(tmp_path / "d", per_shard=10, compress=gzip.compress, extension="gz")
    with gzip.open(tmp_path / "d" / "shard.00000.mds.gz") as file:
        (tmp_path / "d" / "shard.00000.mds").write_bytes(file.read())
    for g, s in zip(read(path), samples()):
        check(g, s)
    assert not cache.exists()


def test_what_the_engine_gives(tmp_path):
    """Shards, shuffling, several folders, sources and checkpoints, which need no code in the reader."""
    path = [write(tmp_path / "a", 10), write(tmp_path / "b", 7)]
    labels = [s["label"] for n in (10, 7) for s in samples(n)]
    assert [g["label"].item() for g in read(path, ("label", "image"))] == labels
    parts = [build(path, ("label",), num_shards=3, shard_id=i, shuffle="global", seed=3) for i in range(3)]
    sizes = [(i + 1) * 17 // 3 - i * 17 // 3 for i in range(3)]
    got = [p.run()[0].at(0).item() for p, n in zip(parts, sizes) for _ in range(n)]
    assert sorted(got) == sorted(labels)
    out = build(path, ("image", "label"), batch_size=17).run()
    assert out[0][4].source_info() == f"{path[0]}/shard.00001.mds at index {_begins(path[0], 1)[0]}"
    kwargs = {"batch_size": 4, "shuffle": "global", "enable_checkpointing": True}

    def checkpointed(**more):
        @pipeline_def(num_threads=2, **kwargs_of_pipeline, **more)
        def pipe():
            return fn.readers.mds(path=path, columns="label", shuffle="global", seed=5)

        return pipe()

    kwargs_of_pipeline = {k: v for k, v in kwargs.items() if k != "shuffle"}
    first = checkpointed()
    first.run()
    saved = first.checkpoint()
    assert checkpointed(checkpoint=saved).run()[0].as_array().tolist() == first.run()[0].as_array().tolist()


def _begins(folder, shard):
    raw = open(os.path.join(folder, f"shard.{shard:05}.mds"), "rb").read()
    n = int(np.frombuffer(raw, "u4", 1)[0])
    return np.frombuffer(raw, "u4", n + 1, 4).tolist()


def test_a_damaged_sample_is_a_bad_sample(tmp_path):
    path = write(tmp_path / "d")
    at = _begins(path, 1)[2]
    with open(os.path.join(path, "shard.00001.mds"), "r+b") as file:
        file.seek(at)
        file.write(b"\xff\xff\xff\x7f")
    pipe = build(path, batch_size=10, on_error="skip")
    assert pipe.run()[1].as_array().ravel().tolist() == [i - 3 for i in range(10) if i != 6]
    error = pipe.errors()[0]  # of those that follow some may have been read ahead
    assert "shard.00001.mds, record 2, offset" in error.source and "has 2147483647 bytes, of which only" in error.reason


@pytest.mark.parametrize(
    "change, error",
    [
        ({"column_encodings": ["jpeg", "int", "ndarray:int16:2,3", "float16", "pkl"]}, "has the encoding 'pkl'"),
        ({"column_encodings": ["jpeg", "int"]}, "has 5 columns, 2 encodings"),
        ({"column_sizes": [None, 4, 12, 2, None]}, "a size of 4 bytes, which do not fit"),
        ({"column_sizes": [None, -8, 12, 2, None]}, "and sizes"),
        ({"format": "jsonl"}, "of the format 'jsonl'"),
        ({"samples": 5}, "says that the shard has 5 samples, the shard says 10"),
        ({"samples": 1 << 40}, "the shard has 1099511627776 samples, but it has"),
        ({"raw_data": {"basename": "../d/shard.00000.mds", "bytes": 1}}, "lies outside of the data set's folder"),
        ({"raw_data": {"bytes": 1}}, "it lacks 'basename'"),
        (None, "is not an index of MDS shards"),
    ],
    ids=str,
)
def test_errors_of_the_index(tmp_path, change, error):
    path = write(tmp_path / "d", per_shard=10)
    index = json.loads((tmp_path / "d/index.json").read_text())
    if change is None:
        index = [1]
    else:
        index["shards"][0].update(change)
        if "raw_data" in change and "basename" in change["raw_data"]:
            os.makedirs(tmp_path / "d" / "d", exist_ok=True)
    (tmp_path / "d/index.json").write_text(json.dumps(index))
    with pytest.raises((ValueError, RuntimeError), match=error):
        build(path).build()


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{", '{"shards": 7}', '{"shards": [7]}', '{"shards": []}'])
def test_an_index_that_is_none(tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ValueError, match="index.json|there are no samples"):
        build(str(tmp_path)).build()


@pytest.mark.parametrize(
    "damage, error",
    [
        (lambda raw: raw[:40], "shard.00000.mds: the index says that the shard has 10 samples, but it has 40 bytes"),
        (lambda raw: raw[:-5], "shard.00000.mds: sample 9 lies from byte"),
        (lambda raw: raw[:12] + b"\0\0\0\0" + raw[16:], "shard.00000.mds: sample 1 lies from byte"),
    ],
    ids=["header", "end", "order"],
)
def test_a_shard_that_does_not_fit(tmp_path, damage, error):
    path = write(tmp_path / "d", per_shard=10)
    shard = tmp_path / "d/shard.00000.mds"
    shard.write_bytes(damage(shard.read_bytes()))
    with pytest.raises(ValueError, match=error):
        build(path).build()


@pytest.mark.parametrize(
    "change, content, error",
    [
        ({"bytes": 373}, None, "has 372 bytes then, and should have 373"),
        ({"bytes": 371}, None, "can't be decompressed"),
        ({"bytes": 1 << 60}, None, "when decompressed, more than memory"),
        ({}, b"not zstd at all", "can't be decompressed"),
        ({}, b"", "has 0 bytes then"),
    ],
    ids=str,
)
def test_a_damaged_compressed_shard(tmp_path, change, content, error):
    data = base64.b64decode(WRITTEN) if content is None else content
    (tmp_path / "shard.00000.mds.zstd").write_bytes(data)
    about = {**INDEX, "raw_data": {**INDEX["raw_data"], **change}}
    (tmp_path / "index.json").write_text(json.dumps({"shards": [about], "version": 2}))
    with pytest.raises(ValueError, match=f"shard.00000.mds.zstd: .*{error}"):
        build(str(tmp_path), ("label",)).build()


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"columns": []}, "'columns' is an empty list"),
        ({"path": []}, "'path' is an empty list"),
        (
            {"columns": ["label", "nothing"]},
            "there is no column 'nothing'; there are image, label,",
        ),
        ({"path": "/no/such/folder"}, "the index can't be read"),
    ],
    ids=str,
)
def test_errors_of_arguments(tmp_path, kwargs, error):
    with pytest.raises((ValueError, OSError, RuntimeError), match=error):
        build(**({"path": write(tmp_path / "d")} | kwargs)).build()
