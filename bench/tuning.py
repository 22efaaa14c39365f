# SPDX-License-Identifier: Apache-2.0
"""Autotuning that begins with one thread and one batch prepared ahead, half a minute later, against the best of several
numbers of threads and batches that were given by hand."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

import measure
from images_cpu import MEAN, STD, files

CORES = len(os.sched_getaffinity(0))
LEAST = 0.95
TUNED = "autotune, from 1 thread and 1 batch ahead"
TUNING_S = 27.0  # before the measurement


def batches(threads: int, depth: int, autotune: bool = False):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock import fn, pipeline_def, types

        how = {"num_threads": threads, "prefetch_queue_depth": depth, "autotune": autotune}

        @pipeline_def(batch_size=o.batch, seed=1, **how)
        def pipe():
            jpegs, labels = fn.readers.file(files=files(o, "photos500"), random_shuffle=True)
            images = fn.random_resized_crop(fn.decoders.image(jpegs), size=(224, 224))
            normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": MEAN, "std": STD}
            return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), **normalise), labels

        built = pipe()
        built.build()
        measured_from = time.perf_counter() + (TUNING_S if autotune else 0)
        while time.perf_counter() < measured_from:
            built.run()
        while True:
            yield len(built.run()[0])

    return contender


def by_hand() -> dict[str, tuple[int, int]]:
    """The settings that are tried, by name."""
    threads = sorted({1, max(CORES // 2, 1), CORES, CORES + max(CORES // 2, 1)})
    return {
        f"{t} thread{'s'[: t > 1]}, {d} batch{'es'[: 2 * (d > 1)]} ahead": (t, d) for t in threads for d in (1, 2, 4)
    }


CONTENDERS = {TUNED: batches(1, 1, True)} | {name: batches(*given) for name, given in by_hand().items()}


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.set_defaults(seconds=2.0, rounds=5)
    o = parser.parse_args()
    if o.worker:
        return measure.work(CONTENDERS[o.worker], o)
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    found = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    if TUNED not in found or len(found) < 2:
        sys.exit("both autotuning and a setting by hand have to be measured")
    best = max((r["images_per_s"], name) for name, r in found.items() if name != TUNED)[1]
    share = found[TUNED]["images_per_s"] / found[best]["images_per_s"]
    lines = [
        "# Autotuning",
        "",
        measure.machine(),
        f"{__doc__} Decoding, random resized crops and normalising of photographs of about 500x375 on the CPU, batch "
        f"{o.batch}, medians of {o.rounds} interleaved runs of {o.seconds:g} s, each in a process of its own; "
        f"autotuning has had {TUNING_S + min(1.0, o.seconds / 2):g} s before.",
        "Written by `bench/tuning.py`.",
        "",
        f'Of the best by hand, which is "{best}": **{share:.1%}**; at least {LEAST:.0%} is wanted: '
        f"{'reached' if share >= LEAST else '**missed**'}.",
        "",
        "| setting | images/s | least | most |",
        "|---|---:|---:|---:|",
        *(f"| {n} | {r['images_per_s']:.0f} | {r['least']:.0f} | {r['most']:.0f} |" for n, r in found.items()),
    ]
    measure.write(o.out, "tuning.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
