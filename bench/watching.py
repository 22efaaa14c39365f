# SPDX-License-Identifier: Apache-2.0
"""What it costs a pipeline to be watched: Prometheus reads its metrics once a second, or PyTorch's profiler gets its
ranges. One pipeline is run with and without, in turns, by the processor time of a batch."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import measure
from images_cpu import MEAN, STD, files

MOST = 0.005
READ_EACH_S = 1.0


def pipeline(o: argparse.Namespace) -> Any:
    from penstock import fn, pipeline_def, types

    @pipeline_def(batch_size=o.batch, num_threads=o.threads, seed=1)
    def pipe():
        jpegs, labels = fn.readers.file(files=files(o, "photos500"), random_shuffle=True)
        images = fn.resize(fn.decoders.image(jpegs), resize_shorter=256)
        normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": MEAN, "std": STD}
        return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise), labels

    return pipe()


@contextmanager
def metrics() -> Iterator[None]:
    """A server of metrics that another thread reads; the time it takes is that of this process."""
    import penstock.metrics

    over = threading.Event()

    def read(url: str) -> None:
        while not over.wait(READ_EACH_S):
            urllib.request.urlopen(url).read()

    with penstock.metrics.serve(port=0) as server:
        reader = threading.Thread(target=read, args=(server.url,))
        reader.start()
        yield
        over.set()
        reader.join()


@contextmanager
def ranges() -> Iterator[None]:
    """As many ranges as if a profiler were attached, which does nothing with them: what profilers cost is theirs."""
    from contextlib import nullcontext

    from penstock.exec import ranges

    before = ranges.watching
    ranges.watching = lambda: lambda name: nullcontext()
    yield
    ranges.watching = before


def slices(pipe: Any, seconds: float, watched: Callable[[], Any]) -> Iterator[tuple[float, float]]:
    """Microseconds of processor time of a batch, without and with."""
    for turn in range(1 << 30):
        found = {}
        for what in ((False, True), (True, False))[turn % 2]:
            with ExitStack() as stack:
                if what:
                    stack.enter_context(watched())
                n, cpu, end = 0, time.process_time(), time.perf_counter() + seconds
                while time.perf_counter() < end:
                    pipe.run()
                    n += 1
                found[what] = (time.process_time() - cpu) / n * 1e6
        yield found[False], found[True]


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.set_defaults(seconds=2.0, rounds=25, threads=len(os.sched_getaffinity(0)))
    o = parser.parse_args()
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    pipe = pipeline(o)
    for _ in range(20):
        pipe.run()
    lines = [
        "# What it costs to be watched",
        "",
        measure.machine(),
        f"{__doc__} val of photographs of about 500x375 on {o.threads} threads of the CPU, batch {o.batch}, "
        f"{o.rounds} pairs of {o.seconds:g} s; the median of their ratios, and the middle half of them.",
        "Written by `bench/watching.py`.",
        "",
        "| | us of processor time a batch | watched | more | of half the pairs | at most | |",
        "|---|---:|---:|---:|---|---:|---|",
    ]
    for name, watched in (
        ("nothing: the noise", ExitStack),
        ("metrics, read every second", metrics),
        ("ranges", ranges),
    ):
        found = slices(pipe, o.seconds, watched)
        pairs = [next(found) for _ in range(o.rounds)]
        ratios = [b / a - 1 for a, b in pairs]
        low, more, high = statistics.quantiles(ratios, n=4)
        judged = f"{MOST:.1%} | {'reached' if more <= MOST else '**missed**'}" if watched is not ExitStack else " | "
        without, watching = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        lines.append(
            f"| {name} | {without:.0f} | {watching:.0f} | {more:+.2%} | {low:+.2%} to {high:+.2%} | {judged} |"
        )
    measure.write(o.out, "watching.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
