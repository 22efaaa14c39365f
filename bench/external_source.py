# SPDX-License-Identifier: Apache-2.0
"""Batches from the user's own Python code: `external_source` with worker processes against DALI's and PyTorch's
DataLoader, and without workers against calling the code in a loop."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import images_cpu
import measure
import numpy as np

SHAPE = (224, 224, 3)  # 150,528 bytes
KEPT = 64  # arrays that a source prepares
ARRAY_WORKERS = 4


class Jpegs:
    """The bytes of one file per sample."""

    def __init__(self, paths: list[str]):
        self.paths = paths

    def __call__(self, info) -> np.ndarray:
        return np.fromfile(self.paths[info.idx_in_epoch % len(self.paths)], np.uint8)


class Arrays:
    """One of several prepared arrays."""

    def __init__(self) -> None:
        self.arrays = [np.full(SHAPE, i, np.uint8) for i in range(KEPT)]

    def __call__(self, info) -> np.ndarray:
        return self.arrays[info.idx_in_epoch % KEPT]


class Crops:
    """A crop of a photograph, mirrored every other time: a new array per sample, as typical sources make."""

    def __init__(self) -> None:
        self.photo = np.random.default_rng(0).integers(0, 256, (375, 500, 3), np.uint8)

    def __call__(self, info) -> np.ndarray:
        i = info.idx_in_epoch
        y, x = i * 7 % 151, i * 13 % 276
        crop = self.photo[y : y + 224, x : x + 224]
        return np.ascontiguousarray(crop[:, ::-1] if i % 2 else crop)


def library(module: str):
    if module == "penstock":
        from penstock import fn, pipeline_def, types
    else:
        from nvidia.dali import fn, pipeline_def, types
    return fn, pipeline_def, types


def jpegs(module: str, method: str = "fork"):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        fn, pipeline_def, types = library(module)
        source = Jpegs(images_cpu.files(o, "photos500"))

        @pipeline_def(
            batch_size=o.batch, num_threads=o.threads, device_id=None, py_num_workers=o.threads, py_start_method=method
        )
        def pipe():
            data = fn.external_source(source=source, batch=False, parallel=True, dtype=types.UINT8)
            images = fn.resize(fn.decoders.image(data, output_type=types.RGB), resize_shorter=256)
            normalise = {"mean": images_cpu.MEAN, "std": images_cpu.STD, "dtype": types.FLOAT, "output_layout": "CHW"}
            return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise)

        yield from runs(pipe())

    return contender


def arrays(module: str, method: str = "fork"):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        fn, pipeline_def, types = library(module)
        source = Arrays()

        @pipeline_def(
            batch_size=o.batch, num_threads=1, device_id=None, py_num_workers=ARRAY_WORKERS, py_start_method=method
        )
        def pipe():
            return fn.external_source(source=source, batch=False, parallel=True, dtype=types.UINT8)

        yield from runs(pipe())

    return contender


def runs(pipe) -> Iterator[int]:
    pipe.build()
    while True:
        yield len(pipe.run()[0])


def pytorch(o: argparse.Namespace) -> Iterator[int]:
    """The same arrays through torch.utils.data.DataLoader."""
    import torch

    torch.set_num_threads(1)

    class Ready(torch.utils.data.Dataset):
        arrays = [torch.from_numpy(a) for a in Arrays().arrays]

        def __len__(self):
            return 1 << 30

        def __getitem__(self, i):
            return self.arrays[i % KEPT]

    for x in torch.utils.data.DataLoader(Ready(), o.batch, num_workers=ARRAY_WORKERS):
        yield len(x)


def alone(kind: type, stack: bool = False):
    """Calls the source in a loop and keeps its batches. With `stack`, makes one array of each batch; as many exist at a
    time as in a pipeline: one in use, two ahead, one being made."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock.types import SampleInfo

        source, i, iteration = kind(), 0, 0
        stacked: deque[np.ndarray] = deque(maxlen=3)
        while True:
            kept = [source(SampleInfo(i + k, k, iteration, 0)) for k in range(o.batch)]
            i, iteration = i + o.batch, iteration + 1
            if stack:
                stacked.append(np.stack(kept))
            yield len(kept)

    return contender


def callable_of(module: str, kind: type, **kwargs):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        fn, pipeline_def, _ = library(module)
        source = kind()

        @pipeline_def(batch_size=o.batch, num_threads=1, device_id=None)
        def pipe():
            return fn.external_source(source=source, batch=False, **kwargs)

        yield from runs(pipe())

    return contender


def end_workers() -> dict[str, float]:
    """Kills child processes: some rivals' workers outlive their main process, and then block readers of its output."""
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    return {}


CONTENDERS = {
    "jpeg: penstock": jpegs("penstock"),
    "jpeg: penstock, threads": jpegs("penstock", "thread"),
    "jpeg: DALI": jpegs("nvidia.dali"),
    "arrays: penstock": arrays("penstock"),
    "arrays: penstock, threads": arrays("penstock", "thread"),
    "arrays: DALI": arrays("nvidia.dali"),
    "arrays: PyTorch DataLoader": pytorch,
    "callable: in a loop": alone(Crops),
    "callable: penstock": callable_of("penstock", Crops),
    "callable: DALI": callable_of("nvidia.dali", Crops),
    "kept: in a loop": alone(Arrays),
    "kept: in a loop, np.stack": alone(Arrays, stack=True),
    "kept: penstock": callable_of("penstock", Arrays),
    "kept: penstock, no_copy": callable_of("penstock", Arrays, no_copy=True),
    "kept: DALI": callable_of("nvidia.dali", Arrays),
    "kept: DALI, no_copy": callable_of("nvidia.dali", Arrays, no_copy=True),
}
CLAIMS = [
    ("JPEG bytes, decode, resize, normalise, against DALI", "jpeg: penstock", "jpeg: DALI", 2.5),
    ("150 KB arrays, against DALI", "arrays: penstock", "arrays: DALI", 1.3),
    ("150 KB arrays, against PyTorch DataLoader", "arrays: penstock", "arrays: PyTorch DataLoader", 1.5),
]
COSTS = [
    ("cost over calling the source in a loop", "callable: penstock", "callable: in a loop"),
    ("arrays that are kept: cost over calling in a loop and np.stack", "kept: penstock", "kept: in a loop, np.stack"),
]


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        return measure.work(CONTENDERS[o.worker], o, end_workers)
    if not o.data or not Path(o.data).is_dir():
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    names = [n for n in CONTENDERS if o.only in n]
    found = measure.measure(__file__, names, o)
    lines = ["| | samples/s | us per sample | resident MB |", "|---|---|---|---|"]
    for name, row in found.items():
        lines.append(f"| {name} | {row['images_per_s']:.0f} | {1e6 / row['images_per_s']:.1f} | {row['rss_mb']:.0f} |")
    lines += ["", "| claim | ratio | at least | |", "|---|---|---|---|"]
    for text, ours, theirs, least in CLAIMS:
        if ours in found and theirs in found:
            ratio = found[ours]["images_per_s"] / found[theirs]["images_per_s"]
            lines.append(f"| {text} | {ratio:.2f} | {least} | {'reached' if ratio >= least else '**missed**'} |")
    for text, ours, loop in COSTS:
        if ours in found and loop in found:
            cost = found[loop]["images_per_s"] / found[ours]["images_per_s"] - 1
            lines.append(f"| {text} | {cost:+.1%} | at most 15 % | {'reached' if cost <= 0.15 else '**missed**'} |")
    if "kept: penstock, no_copy" in found and "kept: in a loop" in found:
        ours, loop = (1e6 / found[k]["images_per_s"] for k in ("kept: penstock, no_copy", "kept: in a loop"))
        lines.append(
            f"| what a pipeline adds to a call without a copy, us ({loop:.1f} in a loop) | {ours - loop:.1f} | | |"
        )
    text = f"""# Sources in Python

{__doc__}
"jpeg": per sample the bytes of a photograph of about 500x375, then decode, resize 256, crop 224, normalise; {o.threads}
worker processes by fork, {o.threads} threads. "arrays": {ARRAY_WORKERS} workers, per sample an array of 150,528 bytes
that is there already, no further operators. "callable": no workers; per sample a new array of 150,528 bytes, cut out of
a photograph. "kept": no workers; per sample one of {KEPT} arrays of that size that the source
keeps, so that a call takes a quarter of a microsecond: a pipeline copies them, as the source may write to them again,
which can't be done in 15 % of that time; the loop with a copy of its own stands beside it. Batch {o.batch}, medians of
{o.rounds} interleaved rounds of {o.seconds} s. Resident memory is that of the main process.

{chr(10).join(lines)}

{measure.machine()} {measure.versions("nvidia-dali-cuda130", "torch", "numpy")}.
"""
    measure.write(o.out, "external_source.md", text)


if __name__ == "__main__":
    main()
