# SPDX-License-Identifier: Apache-2.0
"""Resizing alone, on one thread: penstock, DALI, PyTorch (uint8, antialiased, channels last) and Pillow."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import measure
import numpy as np

# Name, output size (height, width), DALI's and Pillow's filter.
TASKS = {
    "shorter side 256, linear": ((256, 341), "LINEAR", "BILINEAR"),
    "shorter side 256, cubic": ((256, 341), "CUBIC", "BICUBIC"),
    "shorter side 256, Lanczos": ((256, 341), "LANCZOS3", "LANCZOS"),
    "shorter side 256, nearest": ((256, 341), "NN", "NEAREST"),
    "twice as large, linear": ((750, 1000), "LINEAR", "BILINEAR"),
}
RIVALS = ("DALI", "PyTorch", "Pillow")


def images(n: int) -> list[np.ndarray]:
    """n photograph-like images, smooth with some noise."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:375, :500]
    smooth = 127 + 60 * np.sin(x / 9) + 50 * np.cos(y / 7)
    return [np.clip(smooth[..., None] + rng.normal(0, 12, (375, 500, 3)), 0, 255).astype("u1") for _ in range(n)]


def penstock(task: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        from penstock import fn, pipeline_def, types

        (height, width), name, _ = TASKS[task]
        batch = images(o.batch)

        @pipeline_def(batch_size=o.batch, num_threads=1)
        def pipe():
            x = fn.external_source(source=lambda i: batch, layout="HWC", no_copy=True)
            return fn.resize(x, size=(height, width), interp_type=getattr(types, f"INTERP_{name}"))

        p = pipe()
        while True:
            p.run()
            yield o.batch

    return contender


def dali(task: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        from nvidia.dali import fn, pipeline_def, types

        (height, width), name, _ = TASKS[task]
        batch = images(o.batch)

        @pipeline_def(batch_size=o.batch, num_threads=1, device_id=None)
        def pipe():
            x = fn.external_source(source=lambda: batch, layout="HWC", no_copy=True)
            return fn.resize(x, size=(height, width), interp_type=getattr(types, f"INTERP_{name}"))

        p = pipe()
        p.build()
        while True:
            p.run()
            yield o.batch

    return contender


def pytorch(task: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        import torch
        from torch.nn.functional import interpolate

        torch.set_num_threads(1)
        size, name, _ = TASKS[task]
        mode = {"LINEAR": "bilinear", "CUBIC": "bicubic", "NN": "nearest"}[name]
        smooth = {} if name == "NN" else {"antialias": True}
        batch = [torch.from_numpy(i).permute(2, 0, 1)[None] for i in images(o.batch)]
        while True:
            for x in batch:
                interpolate(x, size=size, mode=mode, **smooth)
            yield o.batch

    return contender


def pillow(task: str):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        from PIL import Image

        (height, width), _, name = TASKS[task]
        batch = [Image.fromarray(i) for i in images(o.batch)]
        while True:
            for x in batch:
                x.resize((width, height), getattr(Image, name))
            yield o.batch

    return contender


CONTENDERS = {
    f"{task}: {who}": make(task)
    for task in TASKS
    for who, make in (("penstock", penstock), ("DALI", dali), ("PyTorch", pytorch), ("Pillow", pillow))
    if not (who == "PyTorch" and "Lanczos" in task)
}


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        measure.work(CONTENDERS[o.worker], o)
    results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    lines = [
        "# Resizing alone",
        "",
        measure.machine(),
        f"uint8 images of 500x375x3 in memory, batches of {o.batch}, one thread, medians of {o.rounds} interleaved "
        f"runs of {o.seconds:g} s. {measure.versions('nvidia-dali-cuda130', 'torch', 'pillow', 'numpy')}. Written by "
        "`bench/resize.py`.",
        "",
        "| | penstock images/s | " + " | ".join(f"{r} images/s" for r in RIVALS) + " | "
        "" + " | ".join(f"times {r}" for r in RIVALS) + " |",
        "|---" * (2 + 2 * len(RIVALS)) + "|",
    ]
    for task in TASKS:
        rate = {w: results.get(f"{task}: {w}", {}).get("images_per_s") for w in ("penstock", *RIVALS)}
        if rate["penstock"]:
            speeds = [f"{rate[w]:.0f}" if rate[w] else "" for w in ("penstock", *RIVALS)]
            ratios = [f"{rate['penstock'] / rate[w]:.1f}" if rate[w] else "" for w in RIVALS]
            lines.append(f"| {task} | " + " | ".join(speeds + ratios) + " |")
    measure.write(o.out, "resize.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
