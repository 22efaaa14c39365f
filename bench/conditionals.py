# SPDX-License-Identifier: Apache-2.0
"""What a conditional that splits every batch costs, in processor time, over the same work without it; and in DALI."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np

# Half of the samples are processed one way, half the other. Without the conditional, an argument differs instead.


def _photos(fn: Any, types: Any, options: argparse.Namespace, split: bool, crop: Any = (224, 224)) -> Any:
    files = sorted(map(str, Path(options.data, "photos500").rglob("*.jpg")))
    jpegs, _ = fn.readers.file(files=files, name="reader")
    images = fn.resize(fn.decoders.image(jpegs), size=[256, 256])
    coin = fn.random.coin_flip(dtype=types.BOOL)
    if split:
        if coin:
            images = fn.rotate(images, angle=10.0, keep_size=True, fill_value=0)
        else:
            images = fn.rotate(images, angle=-10.0, keep_size=True, fill_value=0)
    else:
        angle = fn.cast(coin, dtype=types.FLOAT) * 20.0 - 10.0
        images = fn.rotate(images, angle=angle, keep_size=True, fill_value=0)
    return fn.crop_mirror_normalize(images, crop=crop, mean=[128.0] * 3, std=[64.0] * 3)


def _uncropped(fn: Any, types: Any, options: argparse.Namespace, split: bool) -> Any:
    """Without a final crop: a branch does not know its region, while the operator without a branch does."""
    return _photos(fn, types, options, split, None)


def _arrays(fn: Any, types: Any, options: argparse.Namespace, split: bool) -> Any:
    rng = np.random.default_rng(0)
    batch = [rng.integers(0, 255, (256, 256, 3), np.uint8) for _ in range(options.batch)]
    images = fn.external_source(source=lambda i: batch, layout="HWC", no_copy=True)
    coin = fn.random.coin_flip(dtype=types.BOOL)
    if split:
        if coin:
            images = fn.brightness(images, brightness=1.2)
        else:
            images = fn.brightness(images, brightness=0.8)
    else:
        images = fn.brightness(images, brightness=fn.cast(coin, dtype=types.FLOAT) * 0.4 + 0.8)
    return fn.crop_mirror_normalize(images, crop=(224, 224), mean=[128.0] * 3, std=[64.0] * 3)


TASKS: dict[str, Callable[..., Any]] = {
    "JPEG, resize, rotate to the left or to the right, crop, normalise": _photos,
    "JPEG, resize, rotate to the left or to the right, normalise": _uncropped,
    "brighter or darker, crop, normalise, from memory": _arrays,
}


def contender(task: str, library: str, split: bool) -> Callable[[argparse.Namespace], Iterator[int]]:
    def run(o: argparse.Namespace) -> Iterator[int]:
        if library == "DALI":
            from nvidia.dali import fn, pipeline_def, types
        else:
            from penstock import fn, pipeline_def, types

        def define() -> Any:
            return TASKS[task](fn, types, o, split)

        pipe = pipeline_def(
            define, batch_size=o.batch, num_threads=o.threads, device_id=None, seed=1, enable_conditionals=True
        )()
        while True:
            pipe.run()
            yield o.batch

    return run


CONTENDERS = {
    f"{task}: {library} {'with' if split else 'without'}": contender(task, library, split)
    for task in TASKS
    for library in ("penstock", "DALI")
    for split in (False, True)
}


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        measure.work(CONTENDERS[o.worker], o)
    results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    lines = [
        "# What a conditional costs",
        "",
        measure.machine(),
        f"Batches of {o.batch}, {o.threads} threads; processor time per image, of all threads, medians of {o.rounds} "
        f"interleaved runs of {o.seconds:g} s. {measure.versions('nvidia-dali-cuda130', 'numpy')}. Half of the samples "
        "go into one branch, half into the other; without the conditional the two differ in an argument. Written by "
        "`bench/conditionals.py`.",
        "",
        "| | library | without, ms | with, ms | cost |",
        "|---|---|---|---|---|",
    ]
    for task in TASKS:
        for library in ("penstock", "DALI"):
            times = []
            for how in ("without", "with"):
                r = results.get(f"{task}: {library} {how}")
                times.append(r["cpu_s"] / (r["images_per_s"] * o.seconds) * 1e3 if r else None)
            if times[0] and times[1]:
                cost = f"{times[1] / times[0] - 1:+.1%}"
                lines.append(f"| {task} | {library} | {times[0]:.3f} | {times[1]:.3f} | {cost} |")
    measure.write(o.out, "conditionals.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
