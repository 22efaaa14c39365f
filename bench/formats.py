# SPDX-License-Identifier: Apache-2.0
"""Reading alone, in each format: records of about 56 KB, shuffled, nothing done with them; penstock against DALI."""

from __future__ import annotations

import argparse
import os
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import measure

RECORDS, MEAN_BYTES, FILES = 5000, 56_000, 8
FORMATS = ("files", "tfrecord", "recordio")


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _field(number: int, data: bytes) -> bytes:
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


def folder() -> Path:
    """The same records in every format, made once."""
    import numpy as np

    root = Path(tempfile.gettempdir()) / f"penstock-bench-formats-{os.getuid()}"
    if (root / "done").exists():
        return root
    rng = np.random.default_rng(0)
    for name in FORMATS:
        (root / name).mkdir(parents=True, exist_ok=True)
    records = [rng.bytes(int(rng.integers(MEAN_BYTES * 7 // 10, MEAN_BYTES * 13 // 10))) for _ in range(RECORDS)]
    for i, data in enumerate(records):
        (root / "files" / f"{i:05}.jpg").write_bytes(data)
    for name, frame, line in (("tfrecord", _tf_record, "{1} {2}\n"), ("recordio", _mx_record, "{0}\t{1}\n")):
        per_file = RECORDS // (FILES if name == "tfrecord" else 1)  # DALI takes one index of RecordIO
        for k in range(0, RECORDS, per_file):
            at = 0
            path = root / name / f"{k:05}"
            with open(path, "wb") as f, open(f"{path}.idx", "w") as index:
                for i, data in enumerate(records[k : k + per_file]):
                    framed = frame(data, k + i)
                    f.write(framed)
                    index.write(line.format(i, at, len(framed)))
                    at += len(framed)
    (root / "done").touch()
    return root


def pipeline(o: argparse.Namespace, module: str, name: str, shuffles: bool):
    if module == "penstock":
        from penstock import fn, pipeline_def, tfrecord
    else:
        from nvidia.dali import fn, pipeline_def, tfrecord

    root = folder()
    paths = sorted(str(p) for p in (root / name).iterdir() if p.suffix != ".idx")
    indices = [f"{p}.idx" for p in paths]

    @pipeline_def(batch_size=o.batch, num_threads=o.threads, device_id=None, prefetch_queue_depth=2, seed=1)
    def pipe():
        if name == "files":
            return tuple(fn.readers.file(files=paths, random_shuffle=shuffles))
        if name == "recordio":
            return tuple(fn.readers.mxnet(path=paths, index_path=indices, random_shuffle=shuffles))
        features = {
            "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        }
        return tuple(
            fn.readers.tfrecord(path=paths, index_path=indices, features=features, random_shuffle=shuffles).values()
        )

    built = pipe()
    built.build()
    return built


def batches(module: str, name: str, shuffles: bool):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        p = pipeline(o, module, name, shuffles)
        while True:
            yield len(p.run()[0])

    return contender


CONTENDERS = {
    f"{name}{', shuffled' * shuffles}: {title}": batches(module, name, shuffles)
    for name in FORMATS
    for shuffles in (False, True)
    for title, module in (("penstock", "penstock"), ("DALI", "nvidia.dali"))
}
CLAIMS = [
    (f"{name}{shuffled}, against DALI", f"{name}{shuffled}: penstock", f"{name}{shuffled}: DALI", 1.5)
    for name in FORMATS
    for shuffled in ("", ", shuffled")
]


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        measure.work(CONTENDERS[o.worker], o)
    folder()
    results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    lines = [
        "# Reading alone, in each format",
        "",
        measure.machine(),
        f"{RECORDS} records of about {MEAN_BYTES // 1000} KB in the system's cache, batch {o.batch}, {o.threads} "
        f"threads, medians of {o.rounds} interleaved runs of {o.seconds:g} s. "
        f"{measure.versions('nvidia-dali-cuda130', 'numpy')}. Only penstock verifies checksums.",
        "Written by `bench/formats.py`.",
        "",
        "| | records/s | resident MB | CPU s per 1000 records |",
        "|---|---|---|---|",
    ]
    for name, r in results.items():
        cpu = 1000 * r["cpu_s"] / (r["images_per_s"] * o.seconds)
        lines.append(f"| {name} | {r['images_per_s']:.0f} | {r['rss_mb']:.0f} | {cpu:.3f} |")
    lines += ["", "| claim | ratio | at least | |", "|---|---|---|---|"]
    for text, ours, theirs, least in CLAIMS:
        if ours in results and theirs in results:
            ratio = results[ours]["images_per_s"] / results[theirs]["images_per_s"]
            lines.append(f"| {text} | {ratio:.2f} | {least} | {'reached' if ratio >= least else '**missed**'} |")
    measure.write(o.out, "formats.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
