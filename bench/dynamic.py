# SPDX-License-Identifier: Apache-2.0
"""The imperative mode against DALI's, on the CPU: whole jobs, single operators, and what one call costs.

Each library runs all tasks in a process of its own, in turns."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np
from images_cpu import MEAN, STD, files, pipeline

SIZES = (1, 8, 64)
LIBRARIES = ("penstock", "DALI")
TASKS = {
    "val": "reader, decode, resize, crop, normalise, PyTorch",
    "rrc": "reader, decode, random_resized_crop, mirror, normalise, PyTorch",
    "val in a pipeline": "the same as val by a pipeline, for comparison",
    "decode": "of encoded pictures in memory",
    "resize": "of decoded pictures in memory, to 256 x 256",
    "normalise": "crop_mirror_normalize of decoded pictures in memory",
    "x + 1": "three floats for each sample: the cost of a call",
}


def _batches(ndd: Any, o: argparse.Namespace, n: int) -> Iterator[Any]:
    reader = ndd.readers.File(files=files(o, "photos500"), random_shuffle=True, seed=1)
    while True:
        for jpegs, _ in reader.next_epoch(n):
            yield jpegs


def _steps(ndd: Any, o: argparse.Namespace, task: str, n: int) -> Iterator[Any]:
    """Runs the task once per step."""
    normal = {"dtype": ndd.float32, "output_layout": "CHW", "mean": MEAN, "std": STD}
    encoded = _batches(ndd, o, n)
    if task == "val":
        for jpegs in encoded:
            images = ndd.resize(ndd.decoders.image(jpegs), resize_shorter=256.0)
            yield ndd.crop_mirror_normalize(images, crop=(224, 224), **normal).torch()
    if task == "rrc":
        for jpegs in encoded:
            images = ndd.random_resized_crop(ndd.decoders.image(jpegs), size=(224, 224))
            mirror = ndd.random.coin_flip(batch_size=n)
            yield ndd.crop_mirror_normalize(images, mirror=mirror, **normal).torch()
    kept = [next(encoded).evaluate() for _ in range(max(64 // n, 2))]
    if task != "decode":
        kept = [ndd.decoders.image(k).evaluate() for k in kept]
    if task == "x + 1":
        kept = [(ndd.as_batch([np.zeros(3, "f4")] * n) * 2).evaluate()]
    calls: dict[str, Callable[[Any], Any]] = {
        "decode": lambda x: ndd.decoders.image(x),
        "resize": lambda x: ndd.resize(x, size=(256.0, 256.0)),
        "normalise": lambda x: ndd.crop_mirror_normalize(x, crop=(200, 200), **normal),
        "x + 1": lambda x: x + 1,
    }
    i = 0
    while True:
        yield calls[task](kept[i % len(kept)]).evaluate()
        i += 1


def work(o: argparse.Namespace) -> None:
    """Prints the images per second of a library, for each task and size."""
    if o.worker == "penstock":
        from penstock.experimental import dynamic as ndd
    else:
        import nvidia.dali.experimental.dynamic as ndd
    ndd.set_num_threads(o.threads)
    found = {}
    for task in TASKS:
        for n in SIZES:
            if task == "val in a pipeline":
                o.batch = n
                pipe = pipeline(o, "penstock" if o.worker == "penstock" else "nvidia.dali", "val", "photos500")
                steps = iter(pipe.run, None)
            else:
                steps = _steps(ndd, o, task, n)
            warm = time.perf_counter() + o.seconds / 2
            count = 0
            while count < 2 or time.perf_counter() < warm:
                next(steps)
                count += 1
            count, begin = 0, time.perf_counter()
            while count < 2 or time.perf_counter() < begin + o.seconds:
                next(steps)
                count += 1
            found[f"{task}/{n}"] = count * n / (time.perf_counter() - begin)
    print(json.dumps(found), flush=True)
    os._exit(0)


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.set_defaults(seconds=0.4, rounds=3)
    o = parser.parse_args()
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    if o.worker:
        sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
        return work(o)
    runs: dict[str, list[dict[str, float]]] = {lib: [] for lib in LIBRARIES}
    for _ in range(o.rounds):
        for lib in LIBRARIES:
            command = [sys.executable, __file__, "--worker", lib, "--data", o.data]
            command += ["--threads", str(o.threads), "--seconds", str(o.seconds)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            if done.returncode:
                sys.exit(done.stderr)
            runs[lib].append(json.loads(done.stdout.strip().splitlines()[-1]))
    rate = {lib: {k: statistics.median(r[k] for r in rows) for k in rows[0]} for lib, rows in runs.items()}
    lines = ["| | batch | penstock | DALI | ratio |", "|---|---|---|---|---|"]
    for task in TASKS:
        for n in SIZES:
            a, b = (rate[lib][f"{task}/{n}"] for lib in LIBRARIES)
            shown = (
                (f"{n / a * 1e6:,.0f} us", f"{n / b * 1e6:,.0f} us") if task == "x + 1" else (f"{a:,.0f}", f"{b:,.0f}")
            )
            lines.append(f"| {task} | {n} | {' | '.join(shown)} | {a / b:.2f} |")
    about = "\n".join(f"* {task}: {text}" for task, text in TASKS.items())
    text = f"""# The imperative mode on the CPU

Images per second; for "x + 1" the time of a call. Higher ratios are better for penstock.
{o.threads} threads, the default mode (eager), medians of {o.rounds} interleaved runs of {o.seconds} s for each cell.

{about}

{chr(10).join(lines)}

{measure.machine()} {measure.versions("nvidia-dali-cuda130", "torch")}.
"""
    measure.write(o.out, "dynamic.md", text)


if __name__ == "__main__":
    main()
