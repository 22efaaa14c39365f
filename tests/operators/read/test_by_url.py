# SPDX-License-Identifier: Apache-2.0
"""Data sets that are read by URL: the same batches as from files, in any order, for each reader."""

import gzip
import io
import json
import struct
import tarfile
import wave

import numpy as np
import pytest
from tfrecord_files import entry, field, integers, strings, write

from object_server import serving
from optional_packages import Package, needs
from penstock import fn, pipeline_def, tfrecord

lmdb = Package("lmdb")
pytestmark = needs("obstore", "lmdb")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def files(root):
    rng = np.random.default_rng(3)
    for folder in ("cat", "dog"):
        (root / folder).mkdir(parents=True)
        for i in range(11):
            (root / folder / f"{i} ü.jpg").write_bytes(rng.bytes(500 + i))
    (root / "list.txt").write_text("".join(f"cat/{i} ü.jpg {i}\n" for i in range(9)))


def arrays(root):
    (root / "a").mkdir(parents=True)
    for i in range(7):
        np.save(root / "a" / f"{i}.npy", np.arange(12 * (i + 1)).reshape(3, -1))
    (root / "list.txt").write_text("".join(f"a/{i}.npy\n" for i in range(6)))


def shards(root):
    root.mkdir(parents=True)
    rng = np.random.default_rng(4)
    for shard in range(3):
        with tarfile.open(root / f"{shard}.tar", "w") as archive:
            for i in range(20):
                for ext, content in (("jpg", rng.bytes(int(rng.integers(1, 90000)))), ("cls", b"%d" % i)):
                    member = tarfile.TarInfo(f"{i:03}.{ext}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        with tarfile.open(root / f"{shard}.tar") as archive:
            places = [f"{m.name[4:]} {m.offset_data} {m.size} {m.name}" for m in archive]
        samples = [" ".join(places[i : i + 2]) for i in range(0, 40, 2)]
        (root / f"{shard}.idx").write_text("\n".join(["v1.2 20", *samples]))


def tfrecords(root):
    root.mkdir(parents=True)
    examples = [field(1, entry("x", strings(b"x" * (i + 1) * 1000)) + entry("y", integers(i))) for i in range(15)]
    for k in range(2):
        write(root / f"{k}.tfrecord", examples, root / f"{k}.idx")


def recordio(root):
    root.mkdir(parents=True)
    with open(root / "a.rec", "wb") as f, open(root / "a.idx", "w") as index:
        for i in range(12):
            index.write(f"{i}\t{f.tell()}\n")
            data = struct.pack("<IfQQ", 0, i, 0, 0) + b"p" * (i * 4 + 4)
            f.write(struct.pack("<II", 0xCED7230A, len(data)) + data)


def database(root):
    root.mkdir(parents=True)
    with lmdb.open(str(root / "db"), map_size=1 << 24) as env, env.begin(write=True) as records:
        for i in range(30):
            data = b"p" * (700 * i + 1)
            records.put(b"%08d" % i, field(4, data) + bytes([0x28, i]))


def tensors(root):
    """Pairs of an encoded image and an int32, as stored by Caffe2."""
    root.mkdir(parents=True)
    with lmdb.open(str(root / "db"), map_size=1 << 24) as env, env.begin(write=True) as records:
        for i in range(30):
            picture, label = b"\x10\x04" + field(6, b"p" * (700 * i + 1)), b"\x10\x02" + field(4, bytes([i]))
            records.put(b"%08d" % i, field(1, picture) + field(1, label))


def sky(root):
    root.mkdir(parents=True)
    for i in range(6):
        values = np.arange(12 * (i + 1), dtype="f4").reshape(3, -1)
        cards = ["SIMPLE  =                    T", "BITPIX  =                  -32", "NAXIS   =                    2"]
        cards += [f"NAXIS{k}  = {n:>20}" for k, n in enumerate(values.shape[::-1], 1)] + ["END"]
        header, data = "".join(c.ljust(80) for c in cards).encode(), values.astype(">f4").tobytes()
        padded = header.ljust(2880, b" ") + data + bytes(-len(data) % 2880)
        (root / f"{i}.fits").write_bytes(padded)


def coco(root):
    files(root)
    images = [{"id": i, "file_name": f"cat/{i} ü.jpg", "width": 64, "height": 48} for i in range(8)]
    objects = [{"image_id": i, "category_id": 3, "bbox": [1, 2, 3 + i, 4], "iscrowd": 0} for i in range(8)]
    categories = [{"id": 3, "name": "cat"}]
    (root / "a.json").write_text(json.dumps({"images": images, "annotations": objects, "categories": categories}))


def frames(root):
    for stream in "ab":
        (root / stream).mkdir(parents=True)
        for i in range(5):
            (root / stream / f"{i}.pgm").write_bytes(b"P5 2 1 255 " + bytes([i, i]))


def clips(root):
    root.mkdir(parents=True)
    with open("examples/clips/clock.mp4", "rb") as f:
        (root / "clock.mp4").write_bytes(f.read())
    (root / "videos.txt").write_text("clock.mp4 7 0 0.2\n")


def parquet(root):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    root.mkdir(parents=True)
    for k in range(2):
        rows = [{"image": {"bytes": b"p" * (900 * i), "path": None}, "label": 20 * k + i} for i in range(20)]
        pq.write_table(pa.Table.from_pylist(rows), root / f"{k}.parquet", row_group_size=6)


def mds(root, compress=lambda data: data, extension=""):
    root.mkdir(parents=True)
    about = []
    for k in range(2):
        samples = [struct.pack("<I", 700 * i) + b"p" * 700 * i + struct.pack("<q", i) for i in range(9)]
        begins = 4 * 11 + np.cumsum([0, *map(len, samples)])
        raw = np.array([9, *begins], "u4").tobytes() + b"".join(samples)
        name = f"shard.{k}.mds"
        (root / (name + extension)).write_bytes(compress(raw))
        about.append(
            {"format": "mds", "samples": 9, "column_names": ["image", "label"], "column_encodings": ["jpeg", "int"]}
            | {"column_sizes": [None, 8], "raw_data": {"basename": name, "bytes": len(raw)}}
            | ({"compression": "gz", "zip_data": {"basename": name + extension}} if extension else {})
        )
    (root / "index.json").write_text(json.dumps({"version": 2, "shards": about}))


def speech(root):
    """A recording with several entries, and one with a single entry."""
    root.mkdir(parents=True)
    rng = np.random.default_rng(5)
    for name in "ab":
        with wave.open(str(root / f"{name}.wav"), "wb") as f:
            f.setparams((2, 2, 16000, 0, "NONE", ""))
            f.writeframes(rng.bytes(4 * 64000))
    parts = [{"audio_filepath": "a.wav", "offset": i / 4, "duration": 0.3} for i in range(9)]
    lines = [json.dumps(part) for part in [*parts, {"audio_filepath": "b.wav"}]]
    (root / "a.json").write_text("\n".join(lines))


FEATURES = {
    "x": tfrecord.FixedLenFeature([], tfrecord.string, ""),
    "y": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
}
VIDEO = fn.experimental.readers.video
# The writer, the reader, and a function that returns the reader's arguments for a location.
READERS = {
    "file": (
        *(files, fn.readers.file),
        lambda at: {"files": [f"{at}/{c}/{i} ü.jpg" for i in range(11) for c in ("dog", "cat")]},
    ),
    "file_root": (files, fn.readers.file, lambda at: {"file_root": at}),
    "files_in_root": (
        *(files, fn.readers.file),
        lambda at: {"file_root": f"{at}/", "files": [f"cat/{i} ü.jpg" for i in range(9)]},
    ),
    "file_list": (files, fn.readers.file, lambda at: {"file_list": f"{at}/list.txt"}),
    "nemo_asr": (speech, fn.readers.nemo_asr, lambda at: {"manifest_filepaths": [f"{at}/a.json"]}),
    "numpy": (arrays, fn.readers.numpy, lambda at: {"files": [f"{at}/a/{i}.npy" for i in range(7)]}),
    "numpy_root": (arrays, fn.readers.numpy, lambda at: {"file_root": at}),
    "numpy_list": (arrays, fn.readers.numpy, lambda at: {"file_root": at, "file_list": f"{at}/list.txt"}),
    "numpy_region": (
        *(arrays, fn.readers.numpy),
        lambda at: {"files": [f"{at}/a/{i}.npy" for i in range(7)], "rel_roi_start": [0.3, 0.5]},
    ),
    "webdataset": (
        *(shards, fn.readers.webdataset),
        lambda at: {"paths": [f"{at}/{i}.tar" for i in range(3)], "ext": ["jpg", "cls"]},
    ),
    "webdataset_index": (
        *(shards, fn.readers.webdataset),
        lambda at: (
            {f"{k}s": [f"{at}/{i}.{e}" for i in range(3)] for k, e in (("path", "tar"), ("index_path", "idx"))}
            | {"ext": ["jpg", "cls"]}
        ),
    ),
    "tfrecord": (
        *(tfrecords, fn.readers.tfrecord),
        lambda at: {"path": [f"{at}/{i}.tfrecord" for i in range(2)], "features": FEATURES},
    ),
    "tfrecord_index": (
        *(tfrecords, fn.readers.tfrecord),
        lambda at: (
            {k: [f"{at}/{i}.{e}" for i in range(2)] for k, e in (("path", "tfrecord"), ("index_path", "idx"))}
            | {"features": FEATURES}
        ),
    ),
    "mxnet": (recordio, fn.readers.mxnet, lambda at: {"path": f"{at}/a.rec"}),
    "mxnet_index": (recordio, fn.readers.mxnet, lambda at: {"path": f"{at}/a.rec", "index_path": f"{at}/a.idx"}),
    "parquet": (
        *(parquet, fn.readers.parquet),
        lambda at: {"path": [f"{at}/{i}.parquet" for i in range(2)], "columns": ["image", "label"]},
    ),
    "parquet_pattern": (
        *(parquet, fn.readers.parquet),
        lambda at: {"path": f"{at}/*.parquet", "columns": ["label", "image"]},
    ),
    "mds": (mds, fn.readers.mds, lambda at: {"path": at, "columns": ["image", "label"]}),
    "mds_packed": (
        *(lambda root: mds(root, gzip.compress, ".gz"), fn.readers.mds),
        lambda at: {"path": at, "columns": ["image", "label"]},
    ),
    "caffe": (database, fn.readers.caffe, lambda at: {"path": f"{at}/db"}),
    "caffe2": (tensors, fn.readers.caffe2, lambda at: {"path": f"{at}/db"}),
    "fits": (
        *(sky, fn.experimental.readers.fits),
        lambda at: {"files": [f"{at}/{i}.fits" for i in range(6)], "hdu_indices": [1]},
    ),
    "coco": (coco, fn.readers.coco, lambda at: {"file_root": at, "annotations_file": f"{at}/a.json"}),
    "sequence": (frames, fn.readers.sequence, lambda at: {"file_root": at, "sequence_length": 2}),
    "video": (clips, VIDEO, lambda at: {"filenames": [f"{at}/clock.mp4"], "sequence_length": 3}),
    "video_list": (clips, VIDEO, lambda at: {"file_list": f"{at}/videos.txt", "sequence_length": 2}),
}
NEEDS_LISTING = {"file_root", "numpy_root", "sequence", "parquet_pattern"}


def batches(reader, n=4, **arguments):
    @pipeline_def(batch_size=5, num_threads=2, seed=7)
    def pipe():
        outputs = reader(**arguments)
        if isinstance(outputs, dict):
            outputs = list(outputs.values())
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

    built = pipe()
    for _ in range(n):
        yield [[np.array(out.at(i)) for i in range(len(out))] for out in built.run()]


def assert_same(got, want):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        for x, y in zip(a, b, strict=True):
            for i, (s, t) in enumerate(zip(x, y, strict=True)):
                assert s.dtype == t.dtype and s.shape == t.shape and (s == t).all(), (k, i)


@pytest.mark.parametrize("kind", ["http", "s3"])
@pytest.mark.parametrize("name", READERS)
def test_same_as_files(tmp_path, monkeypatch, name, kind):
    write, reader, arguments = READERS[name]
    write(tmp_path / "data")
    with serving() as server:
        server.put_folder(tmp_path / "data", "bucket/some data")
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        at = f"{server.url}/bucket/some%20data" if kind == "http" else "s3://bucket/some data"
        if name in NEEDS_LISTING and kind == "http":
            with pytest.raises((OSError, RuntimeError, ValueError), match="list"):
                list(batches(reader, **arguments(at)))
            return
        for order in ({}, {"random_shuffle": True}):
            here, there = arguments(str(tmp_path / "data")), arguments(at)
            assert_same(batches(reader, **there, **order), batches(reader, **here, **order))
