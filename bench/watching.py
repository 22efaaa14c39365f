# SPDX-License-Identifier: Apache-2.0
"""What it costs a pipeline to be watched, in processor time: that Prometheus reads its metrics, and that its stages are
ranges for profilers. Both are too little to be seen in images per second, so each is timed by itself and compared with
what a batch takes."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import measure
from images_cpu import MEAN, STD, files

MOST = 0.005
READ_EACH_S = 1.0  # Prometheus itself reads every 15 or 60 s


def pipeline(o: argparse.Namespace) -> Any:
    from penstock import fn, pipeline_def, types

    @pipeline_def(batch_size=o.batch, num_threads=o.threads, seed=1)
    def pipe():
        jpegs, labels = fn.readers.file(files=files(o, "photos500"), random_shuffle=True)
        images = fn.resize(fn.decoders.image(jpegs), resize_shorter=256)
        normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": MEAN, "std": STD}
        return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise), labels

    return pipe()


def processor_us(call: Callable[[], Any], times: int, rounds: int) -> float:
    """Processor microseconds of a call, in all threads of the process; the median of `rounds` rounds."""
    found = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(times):
            call()
        found.append((time.process_time() - begin) / times * 1e6)
    return statistics.median(found)


def counted_ranges(pipe: Any, batches: int) -> tuple[float, float]:
    """Per batch: how often the pipeline checks for a profiler, and the number of ranges if there is one."""
    from penstock.exec import ranges

    asked, begun, before = [0], [0], ranges.watching

    def watch(_: str) -> Any:
        begun[0] += 1
        return nullcontext()

    def watching() -> Any:
        asked[0] += 1
        return watch

    ranges.watching = watching
    for _ in range(batches):
        pipe.run()
    ranges.watching = before
    return asked[0] / batches, begun[0] / batches


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.set_defaults(threads=len(os.sched_getaffinity(0)))
    o = parser.parse_args()
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    from torch.autograd.profiler import record_function
    from torch.profiler import ProfilerActivity, profile

    import penstock.metrics
    from penstock.exec import ranges

    pipe = pipeline(o)
    for _ in range(20):
        pipe.run()
    batch_us = processor_us(pipe.run, 20, o.rounds)
    asked, begun = counted_ranges(pipe, 20)
    time.sleep(1)  # until the batches made ahead are done
    with penstock.metrics.serve(port=0) as server:
        reading_us = processor_us(lambda: urllib.request.urlopen(server.url).read(), 20, o.rounds)

    def asks() -> None:
        with ranges.in_range("nothing"):
            pass

    def records() -> None:
        with record_function("penstock: something"):
            pass

    asking_us = processor_us(asks, 20_000, o.rounds)
    with profile(activities=[ProfilerActivity.CPU]):
        recording_us = processor_us(records, 2_000, o.rounds)
    rows = {
        f"metrics, read every {READ_EACH_S:g} s over HTTP": (
            f"{reading_us:.0f} us a reading, client and server",
            reading_us / (READ_EACH_S * 1e6),
            "of a core",
        ),
        "ranges while no profiler is attached": (
            f"{asked:.1f} questions a batch, {asking_us:.2f} us each",
            asked * asking_us / batch_us,
            "of a batch",
        ),
        "ranges for PyTorch's profiler": (
            f"{begun:.1f} ranges a batch, {recording_us:.2f} us each by `record_function`",
            begun * recording_us / batch_us,
            "of a batch",
        ),
    }
    lines = [
        "# What it costs to be watched",
        "",
        measure.machine(),
        f"{__doc__} val of photographs of about 500x375 on {o.threads} threads of the CPU; a batch of {o.batch} takes "
        f"{batch_us / 1e3:.1f} ms of processor time. Medians of {o.rounds} rounds. {measure.versions('torch')}.",
        "Written by `bench/watching.py`.",
        "",
        "| | | share | | at most | |",
        "|---|---|---:|---|---:|---|",
        *(
            f"| {name} | {what} | {share:.3%} | {of} | {MOST:.1%} | {'reached' if share <= MOST else '**missed**'} |"
            for name, (what, share, of) in rows.items()
        ),
    ]
    measure.write(o.out, "watching.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
