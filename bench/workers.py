# SPDX-License-Identifier: Apache-2.0
"""What it costs to have other processes make the batches: two workers of a thread each against one process of two
threads, on the same two cores."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import images_cpu
import measure

TASKS = {
    "val": "decode, resize, crop and normalise: float32",
    "crop": "the same, left as uint8",
    "read": "the bytes of the files only",
}
LEAST = 0.9


def pipeline(o: argparse.Namespace, task: str, **how):
    from penstock import fn, pipeline_def, types

    @pipeline_def(batch_size=o.batch, prefetch_queue_depth=2, seed=1, **how)
    def pipe():
        jpegs, labels = fn.readers.file(files=images_cpu.files(o, "photos500"), random_shuffle=True)
        if task == "read":
            return jpegs, labels
        images = fn.resize(fn.decoders.image(jpegs), resize_shorter=256)
        if task == "crop":
            return fn.crop(images, crop=(224, 224)), labels
        normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": images_cpu.MEAN, "std": images_cpu.STD}
        return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise), labels

    built = pipe()
    built.build()
    return built


def batches(task: str, workers: bool):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        how = {"num_threads": 1, "workers": o.threads} if workers else {"num_threads": o.threads}
        pipe = pipeline(o, task, **how)
        while True:
            yield len(pipe.run()[0])

    return contender


CONTENDERS = {
    f"{task}: {'workers' if workers else 'one process'}": batches(task, workers)
    for task in TASKS
    for workers in (False, True)
}


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        return measure.work(CONTENDERS[o.worker], o)
    if not o.data or not Path(o.data).is_dir():
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    found = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    lines = [
        "| task | one process, images/s | workers, images/s | ratio | at least | | MB of all processes |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        one, many = (found.get(f"{task}: {name}") for name in ("one process", "workers"))
        if one and many:
            ratio = many["images_per_s"] / one["images_per_s"]
            judged = f"{LEAST} | {'reached' if ratio >= LEAST else '**missed**'}" if task == "val" else " | "
            rates = " | ".join(f"{r['images_per_s']:.0f} ({r['least']:.0f} to {r['most']:.0f})" for r in (one, many))
            lines.append(f"| {task} | {rates} | {ratio:.2f} | {judged} | {one['rss_mb']:.0f} / {many['rss_mb']:.0f} |")
    text = f"""# Batches made by other processes

{__doc__}
{"; ".join(f'"{name}": {what}' for name, what in TASKS.items())}. Photographs of about
500x375, batches of {o.batch}, {o.threads} threads or workers, medians of {o.rounds} interleaved rounds
of {o.seconds} s (least to most).

{chr(10).join(lines)}

{measure.machine()}
"""
    measure.write(o.out, "workers.md", text)


if __name__ == "__main__":
    main()
