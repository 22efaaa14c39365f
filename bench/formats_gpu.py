# SPDX-License-Identifier: Apache-2.0
"""Data sets in several formats to training batches on the GPU (decoders.image with device="mixed", resize, crop,
normalise): from TFRecord, RecordIO and WebDataset against the same pictures as files.

    python bench/formats_gpu.py --data FOLDER [--batch 256] [--seconds 3] [--rounds 5]

Needs penstock, NumPy and photographs; neither DALI nor the formats' libraries."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

import measure

sys.path.insert(0, str(measure.ROOT / "src"))
import formats  # noqa: E402

FORMATS = ("files", "tfrecord", "recordio", "webdataset")
LEAST = 0.95


def batches(name: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock import fn, pipeline_def, tfrecord, types

        @pipeline_def(batch_size=o.batch, num_threads=o.threads, device_id=0, seed=1)
        def pipe():
            encoded, labels = formats.read(o, fn, tfrecord, name)
            images = fn.decoders.image(encoded, device="mixed", output_type=types.RGB)
            images = fn.resize(images, resize_shorter=256)
            normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": formats.MEAN, "std": formats.STD}
            return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise), labels.gpu()

        p = pipe()
        p.build()
        while True:
            yield len(p.run()[0])

    return contender


CONTENDERS = {name: batches(name) for name in FORMATS}


def gpu() -> str:
    from penstock.gpu import driver

    device = driver.Device.get(0)
    with device:
        return str(device.name)


def main() -> None:
    p = measure.arguments(__doc__)
    p.set_defaults(batch=256, threads=len(os.sched_getaffinity(0)))
    o = p.parse_args()
    if o.worker:
        measure.work(CONTENDERS[o.worker], o)
    for name in FORMATS:
        root = formats.folder(o, name)
    results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    lines = [
        "# Data sets in several formats, decoded on the GPU",
        "",
        f"{gpu()}. {measure.machine()}",
        f"{formats.RECORDS} records with photographs of about {int((root / 'bytes').read_text()) / 1000:.0f} KB in "
        f"the system's cache, shuffled, batch {o.batch}, {o.threads} threads: decoded on the GPU, resized, cropped and "
        f"normalised. Medians of {o.rounds} interleaved runs of {o.seconds:g} s. {measure.versions('numpy')}.",
        "Written by `bench/formats_gpu.py`.",
        "",
        "| val from | pictures/s | least | most | CPU s per 1000 | against files | at least | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        rates = " | ".join(f"{r[k]:.0f}" for k in ("images_per_s", "least", "most"))
        line = f"| {name} | {rates} | {1000 * r['cpu_s'] / (r['images_per_s'] * r['seconds']):.3f}"
        if name != "files" and "files" in results:
            ratio = r["images_per_s"] / results["files"]["images_per_s"]
            lines.append(f"{line} | {ratio:.2f} | {LEAST} | {'reached' if ratio >= LEAST else '**missed**'} |")
        else:
            lines.append(f"{line} | | | |")
    measure.write(o.out, "formats_gpu.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
