# SPDX-License-Identifier: Apache-2.0
"""Data sets in every format: reading alone, and a pipeline for validation (decode, resize, crop, normalise). The same
pictures in each; penstock against DALI, against the same pictures as files, and against the library webdataset.

Results are kept beside the data, so that a long measurement can be made in pieces: --only takes a regular expression,
such as "read: (files|lmdb)" or "val:.*penstock". What is compared should be in one piece."""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import measure
import numpy as np

RECORDS, FILES, ROW_GROUP = 5000, 8, 100
MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _field(number: int, data: bytes | int) -> bytes:
    if isinstance(data, int):
        return _varint(number << 3) + _varint(data)
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _tf_record(data: bytes, label: int) -> bytes:
    from penstock.core.kernels import library

    def masked(b: bytes) -> bytes:
        crc = library().checksum_crc32c(b, len(b), 0)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    features = {"image": _field(1, _field(1, data)), "label": _field(3, _field(1, _varint(label)))}
    example = _field(1, b"".join(_field(1, _field(1, k.encode()) + _field(2, v)) for k, v in features.items()))
    length = struct.pack("<Q", len(example))
    return length + masked(length) + example + masked(example)


def _mx_record(data: bytes, label: int) -> bytes:
    image = struct.pack("<IfQQ", 0, label, 0, 0) + data
    return struct.pack("<II", 0xCED7230A, len(image)) + image + bytes(-len(image) % 4)


def _write(path: Path, content: bytes) -> None:
    """Writes a file at once, as downloads do. The page cache then holds it in large pieces: files written record by
    record take half as long again to read."""
    path.write_bytes(content)


def _framed(frame: Callable[[bytes, int], bytes], line: str, path: Path, records: list[tuple[bytes, int]]) -> None:
    framed = [frame(*record) for record in records]
    _write(path, b"".join(framed))
    at = np.cumsum([0, *map(len, framed)]).tolist()
    Path(f"{path}.idx").write_text("".join(line.format(i, at[i], len(f)) for i, f in enumerate(framed)))


def _tar(path: Path, records: list[tuple[bytes, int]]) -> None:
    lines, file = [], io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for i, (data, label) in enumerate(records):
            line = []
            for extension, content in (("jpg", data), ("cls", b"%d" % label)):
                member = tarfile.TarInfo(f"{i:06}.{extension}")
                member.size = len(content)
                at = archive.offset
                archive.addfile(member, io.BytesIO(content))
                line.append(f"{extension} {at + 512} {len(content)} {member.name}")
            lines.append(" ".join(line))
    _write(path, file.getvalue())
    Path(f"{path}.idx").write_text("\n".join([f"v1.2 {len(lines)}", *lines]) + "\n")


def _lmdb(path: Path, records: list[tuple[bytes, int]]) -> None:
    import lmdb

    with lmdb.open(str(path), map_size=1 << 32) as env, env.begin(write=True) as txn:
        for i, (data, label) in enumerate(records):
            txn.put(b"%08d" % i, _field(4, data) + _field(5, label) + _field(7, 1))


def _parquet(path: Path, records: list[tuple[bytes, int]], compression: str = "snappy") -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [{"image": {"bytes": data, "path": None}, "label": label} for data, label in records]
    kind = pa.schema(
        [("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])), ("label", pa.int64())],
    )
    pq.write_table(pa.Table.from_pylist(rows, kind), path, row_group_size=ROW_GROUP, compression=compression)


def _plain(path: Path, records: list[tuple[bytes, int]]) -> None:
    path.mkdir()
    for i, (data, _) in enumerate(records):
        (path / f"{i:05}.jpg").write_bytes(data)


# The function that writes a format, and its number of files.
FORMATS: dict[str, tuple[Callable[[Path, list], None], int]] = {
    "files": (_plain, FILES),
    "tfrecord": (lambda *a: _framed(_tf_record, "{1} {2}\n", *a), FILES),
    "recordio": (lambda *a: _framed(_mx_record, "{0}\t{1}\n", *a), 1),  # DALI takes one index
    "lmdb": (_lmdb, 1),
    "webdataset": (_tar, FILES),
    "parquet": (_parquet, FILES),
    "parquet, uncompressed": (lambda *a: _parquet(*a, "none"), FILES),
}


def folder(o: argparse.Namespace, name: str = "") -> Path:
    """A folder with the same records in every format (or only in `name`), made once. The photographs are repeated."""
    root = Path(tempfile.gettempdir()) / f"penstock-bench-formats-{os.getuid()}-4"
    missing = [n for n in ([name] if name else FORMATS) if not (root / f"{n} done").exists()]
    if not missing:
        return root
    photos = sorted(Path(o.data, "photos500").rglob("*.jpg")) or sorted(Path(o.data).rglob("*.jpg"))
    if not photos:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    contents = [p.read_bytes() for p in photos]
    records = [(contents[i % len(contents)], i % 1000) for i in range(RECORDS)]
    for n in missing:
        write, n_files = FORMATS[n]
        shutil.rmtree(root / n, ignore_errors=True)
        (root / n).mkdir(parents=True)
        for k in range(n_files):
            write(root / n / f"{k:02}", records[k * RECORDS // n_files : (k + 1) * RECORDS // n_files])
        (root / f"{n} done").touch()
    (root / "bytes").write_text(str(sum(len(data) for data, _ in records) // RECORDS))
    return root


def warm(root: Path, names: list[str]) -> None:
    """Reads the files of contenders into the page cache, which may have dropped them since the last part."""
    for kind in {name.split(": ")[1] for name in names}:
        for path in (root / kind).rglob("*"):
            if path.is_file():
                path.read_bytes()


def _paths(o: argparse.Namespace, name: str) -> list[str]:
    return sorted(str(p) for p in (folder(o, name) / name).iterdir() if p.suffix != ".idx")


def read(o: argparse.Namespace, fn, tfrecord, name: str):
    """Encoded pictures and labels, shuffled."""
    paths = _paths(o, name)
    indices = [f"{p}.idx" for p in paths]
    shuffled = {"random_shuffle": True, "name": "reader"}
    if name == "files":
        files = sorted(str(p) for p in (folder(o, name) / name).rglob("*.jpg"))
        return fn.readers.file(files=files, **shuffled)
    if name == "recordio":
        return fn.readers.mxnet(path=paths, index_path=indices, **shuffled)
    if name == "lmdb":
        return fn.readers.caffe(path=paths, **shuffled)
    if name == "webdataset":
        return fn.readers.webdataset(paths=paths, index_paths=indices, ext=["jpg", "cls"], **shuffled)
    if name.startswith("parquet"):
        return fn.readers.parquet(path=paths, columns=["image", "label"], shuffle="windows", name="reader")
    features = {
        "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }
    return fn.readers.tfrecord(path=paths, index_path=indices, features=features, **shuffled).values()


def batches(module: str, task: str, name: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        if module == "penstock":
            from penstock import fn, pipeline_def, tfrecord, types
        else:
            from nvidia.dali import fn, pipeline_def, tfrecord, types

        @pipeline_def(batch_size=o.batch, num_threads=o.threads, device_id=None, prefetch_queue_depth=2, seed=1)
        def pipe():
            encoded, labels = read(o, fn, tfrecord, name)
            if task == "read":
                return encoded, labels
            images = fn.resize(fn.decoders.image(encoded, output_type=types.RGB), resize_shorter=256)
            normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": MEAN, "std": STD}
            return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise), labels

        p = pipe()
        p.build()
        seen = 0
        while name.startswith("parquet") and seen < RECORDS:  # row groups are kept from the second epoch on
            seen += len(p.run()[0])
        while True:
            yield len(p.run()[0])

    return contender


def webdataset(o: argparse.Namespace) -> Iterator[int]:
    """The library's own loader: in this process, without decoding."""
    import webdataset as wds

    while True:
        samples = wds.WebDataset(_paths(o, "webdataset"), shardshuffle=False).to_tuple("jpg", "cls").batched(o.batch)
        for images, _ in samples:
            yield len(images)


def decoded_again(name: str):
    """Row groups are decoded in every epoch, as with data sets too large for the reader to keep them."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock.operators.read import _row_groups

        _row_groups.MOST_BYTES = 0
        yield from batches("penstock", "val", name)(o)

    return contender


def tf_data(task: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import tensorflow as tf

        features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

        def picture(encoded, label):
            image = tf.io.decode_jpeg(encoded, channels=3)
            shape = tf.cast(tf.shape(image)[:2], tf.float32)
            size = tf.cast(tf.round(shape * 256 / tf.reduce_min(shape)), tf.int32)
            image = tf.image.resize(image, size, antialias=True)
            image = tf.image.resize_with_crop_or_pad(image, 224, 224)
            return tf.transpose((image - MEAN) / STD, (2, 0, 1)), label

        files = tf.data.TFRecordDataset(_paths(o, "tfrecord"), num_parallel_reads=o.threads)
        data = files.repeat().shuffle(1024).batch(o.batch)
        data = data.map(lambda x: tuple(tf.io.parse_example(x, features).values()), num_parallel_calls=o.threads)
        if task == "val":
            data = data.unbatch().map(picture, num_parallel_calls=o.threads).batch(o.batch)
        options = tf.data.Options()
        options.threading.private_threadpool_size = o.threads
        for _, labels in data.prefetch(2).with_options(options):
            yield len(labels)

    return contender


CONTENDERS = {
    f"{task}: {name}: {title}": batches(module, task, name)
    for task in ("read", "val")
    for name in FORMATS
    for title, module in (("penstock", "penstock"), ("DALI", "nvidia.dali"))
    if title == "penstock" or not name.startswith("parquet")
}
CONTENDERS |= {
    **{f"val: {name}: penstock, nothing kept": decoded_again(name) for name in ("parquet", "parquet, uncompressed")},
    "read: webdataset: library webdataset": webdataset,
    "read: tfrecord: tf.data": tf_data("read"),
    "val: tfrecord: tf.data": tf_data("val"),
}
CLAIMS = [
    *(
        (f"reading {n}, against DALI", f"read: {n}: penstock", f"read: {n}: DALI", 1.0 if n == "webdataset" else 1.5)
        for n in FORMATS
        if not n.startswith("parquet")
    ),
    (
        *("reading webdataset, against the library webdataset", "read: webdataset: penstock"),
        *("read: webdataset: library webdataset", 10.0),
    ),
    *(
        (f"{text} tfrecord, against tf.data", f"{task}: tfrecord: penstock", f"{task}: tfrecord: tf.data", 2.0)
        for task, text in (("read", "reading"), ("val", "val from"))
    ),
    *(
        (f"val from {n}, against DALI", f"val: {n}: penstock", f"val: {n}: DALI", 4.0)
        for n in FORMATS
        if not n.startswith("parquet")
    ),
    *(
        (f"val from {n}, against files", f"val: {n}: penstock", "val: files: penstock", 0.95)
        for n in FORMATS
        if n != "files"
    ),
    *(
        (
            f"val from {n}, nothing kept, against files",
            f"val: {n}: penstock, nothing kept",
            "val: files: penstock",
            0.95,
        )
        for n in ("parquet", "parquet, uncompressed")
    ),
]


def _version(python: str, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def main() -> None:
    p = measure.arguments(__doc__)
    p.add_argument("--tensorflow", default="", help="Python of an environment with TensorFlow; its version is noted")
    o = p.parse_args()
    if o.worker:
        measure.work(CONTENDERS[o.worker], o)
    root = folder(o)
    names = [n for n in CONTENDERS if re.search(o.only, n) and (o.tensorflow or "tf.data" not in n)]
    warm(root, names)
    results = measure.measure(__file__, names, o, {n: o.tensorflow for n in names if "tf.data" in n})
    if o.tensorflow:
        results["tensorflow"] = {"version": _version(o.tensorflow, "tensorflow-cpu")}
    results = measure.kept(root / "results.json", results)
    version = results.get("tensorflow", {}).get("version", "")
    lines = [
        "# Data sets in every format",
        "",
        measure.machine(),
        f"{RECORDS} records with photographs of about {int((root / 'bytes').read_text()) / 1000:.0f} KB in the "
        f"system's cache, shuffled, batch {o.batch}, {o.threads} threads. Medians of interleaved runs of "
        f"{o.seconds:g} s, with the least and the most; ratios are medians over the rounds, or of medians. "
        f"{measure.versions('nvidia-dali-cuda130', 'numpy', 'pyarrow', 'webdataset')}. *read* only reads; *val* "
        "decodes, resizes, crops and normalises. penstock and tf.data verify checksums of TFRecord, DALI does not. "
        "Parquet is compressed by Snappy and shuffled by windows, and all of its row groups fit into what the reader "
        "keeps, except where it says otherwise; it is measured from the second epoch on (in the first one, nothing is "
        "kept yet)." + (f" tf.data is that of tensorflow {version} in an environment of its own." if version else ""),
        "Written by `bench/formats.py`.",
        "",
        "| | pictures/s | least | most | runs | resident MB | CPU s per 1000 |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in (n for n in CONTENDERS if n in results):
        r = results[name]
        cpu = 1000 * r["cpu_s"] / (r["images_per_s"] * r["seconds"])
        rates = " | ".join(f"{r[k]:.0f}" for k in ("images_per_s", "least", "most"))
        lines.append(f"| {name} | {rates} | {len(r['rates'])} | {r['rss_mb']:.0f} | {cpu:.3f} |")
    lines += ["", "| claim | ratio | at least | |", "|---|---|---|---|"]
    for text, ours, theirs, least in CLAIMS:
        if ours in results and theirs in results:
            ratio = measure.ratio(results[ours], results[theirs])
            lines.append(f"| {text} | {ratio:.2f} | {least} | {'reached' if ratio >= least else '**missed**'} |")
    measure.write(o.out, "formats.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
