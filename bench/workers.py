# SPDX-License-Identifier: Apache-2.0
"""What it costs to have other processes make the batches: two workers of a thread each, processes or actors of Ray,
against one process of two threads, on the same two cores."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import images_cpu
import measure

TASKS = {
    "val": "decode, resize, crop and normalise: float32",
    "crop": "the same, left as uint8",
    "read": "the bytes of the files only",
}
LEAST = {"workers": 0.9, "Ray": 0.75}
MOST_SECONDS = 3.0  # until the first batch of a worker
WAYS = {"one process": {}, "workers": {"workers": 2}, "Ray": {"workers": "auto"}}


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


def batches(task: str, how: dict[str, Any], seen: dict[str, float]) -> Callable[[argparse.Namespace], Iterator[int]]:
    """Stores in `seen` the seconds from the start of the workers to the first batch."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        given = {"num_threads": 1 if how else o.threads, **how}
        if how.get("workers") == 2:
            given["workers"] = o.threads
        elif how:
            connect(o)
        start = time.perf_counter()
        pipe = pipeline(o, task, **given)
        pipe.run()
        seen["first_s"] = time.perf_counter() - start
        while True:
            yield len(pipe.run()[0])

    return contender


def connect(o: argparse.Namespace) -> None:
    import ray

    env = {"env_vars": {"PYTHONPATH": str(measure.ROOT / "src")}}
    ray.init(num_cpus=o.threads, include_dashboard=False, log_to_driver=False, runtime_env=env)
    ray.get([ray.remote(lambda: 0).remote() for _ in range(o.threads)])  # wait until Ray and its processes have started


SEEN: dict[str, float] = {}
CONTENDERS = {
    f"{task}: {way}": batches(task, how, SEEN)
    for task in TASKS
    for way, how in WAYS.items()
    if way != "Ray" or (task == "val" and importlib.util.find_spec("ray"))
}


def main() -> None:
    p = measure.arguments(__doc__)
    p.add_argument("--keep", default="", help="a JSON file that keeps tasks, for measurements that are made in pieces")
    o = p.parse_args()
    if o.worker:
        return measure.work(CONTENDERS[o.worker], o, lambda: SEEN)
    if not o.data or not Path(o.data).is_dir():
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have byte code, so workers don't compile any
    found = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    if o.keep:
        found = measure.kept(Path(o.keep), found)
    lines = [
        "| task | one process, images/s | workers, images/s | ratio | at least | | MB of all | first batch, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task, way in [*((task, "workers") for task in TASKS), ("val", "Ray")]:
        one, many = (found.get(f"{task}: {name}") for name in ("one process", way))
        if one and many:
            ratio = many["images_per_s"] / one["images_per_s"]
            judged = f"{LEAST[way]} | {'reached' if ratio >= LEAST[way] else '**missed**'}" if task == "val" else " | "
            rates = " | ".join(f"{r['images_per_s']:.0f} ({r['least']:.0f} to {r['most']:.0f})" for r in (one, many))
            title = task if way == "workers" else f"{task}, actors of {way}"
            soon = "reached" if many["first_s"] <= MOST_SECONDS else "**missed**"
            first = f"{many['first_s']:.1f} (at most {MOST_SECONDS:g}: {soon})"
            memory = f"{one['rss_mb']:.0f} / {many['rss_mb']:.0f}"
            lines.append(f"| {title} | {rates} | {ratio:.2f} | {judged} | {memory} | {first} |")
    text = f"""# Batches made by other processes

{__doc__}
{"; ".join(f'"{name}": {what}' for name, what in TASKS.items())}. Photographs of about
500x375, batches of {o.batch}, {o.threads} threads or workers, medians of {o.rounds} interleaved rounds
of {o.seconds} s (least to most). First batch: from when the pipeline is built, which starts the workers; Ray is there
already, the actors are not.

{chr(10).join(lines)}

{measure.machine()}
"""
    measure.write(o.out, "workers.md", text)


if __name__ == "__main__":
    main()
