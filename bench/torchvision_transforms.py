# SPDX-License-Identifier: Apache-2.0
"""Transforms by torchvision's names on the CPU: penstock's, torchvision's own, DALI's.

`python bench/torchvision_transforms.py --data FOLDER`, with a folder of photographs. Each rival gets the same pictures,
in memory: images of Pillow one by one, tensors CHW one by one, and a batch NCHW. Writes
results/torchvision_transforms.md. Rivals that are not installed are left out. What is counted is processor time of all
threads, which other work on the machine hardly changes; `--wall` counts the time that passes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]
BUDGET, MOST_ROUNDS = 0.3, 15  # seconds per case; rounds


def penstock_or_dali(module: str, threads: int):
    t = importlib.import_module(module)
    if module.startswith("nvidia") and not torch.cuda.is_available():
        torch.cuda.current_stream = lambda *a, **k: None  # DALI calls it even without a GPU

    def make(name: str):
        lists = {
            "val": [t.Resize(256), t.CenterCrop(224), t.PILToTensor(), t.Normalize(MEAN, STD)],
            "rrc": [t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.PILToTensor(), t.Normalize(MEAN, STD)],
            "jitter": [t.RandomResizedCrop(224), t.ColorJitter(0.4, 0.4, 0.4, 0.1), t.PILToTensor()],
            "blur": [t.Resize((224, 224)), t.GaussianBlur(9, (0.1, 2.0)), t.PILToTensor()],
            "resize": [t.Resize((224, 224))],
            "crop": [t.RandomCrop(224, padding=8)],
            "flip": [t.RandomHorizontalFlip(1.0)],
            "grey": [t.Grayscale(3)],
        }
        return t.Compose(lists[name], batch_size=64, num_threads=threads)

    return make


def torchvision(threads: int):
    v2 = importlib.import_module("torchvision.transforms.v2")
    torch.set_num_threads(threads)
    mean, std = [m / 255 for m in MEAN], [s / 255 for s in STD]

    def make(name: str):
        end = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)]
        lists = {
            "val": [v2.Resize(256), v2.CenterCrop(224), *end],
            "rrc": [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), *end],
            "jitter": [v2.RandomResizedCrop(224), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.ToImage()],
            "blur": [v2.Resize((224, 224)), v2.GaussianBlur(9, (0.1, 2.0)), v2.ToImage()],
            "resize": [v2.Resize((224, 224))],
            "crop": [v2.RandomCrop(224, padding=8)],
            "flip": [v2.RandomHorizontalFlip(1.0)],
            "grey": [v2.Grayscale(3)],
        }
        return v2.Compose(lists[name])

    return make


RIVALS = {
    "penstock": lambda n: penstock_or_dali("penstock.experimental.torchvision", n),
    "torchvision": torchvision,
    "DALI": lambda n: penstock_or_dali("nvidia.dali.experimental.torchvision", n),
}


def inputs(folder: Path, n: int) -> dict[str, list]:
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    images = []
    for path in files:
        image = Image.open(path).convert("RGB")
        if min(image.size) >= 240:
            images.append(image)
        if len(images) == n:
            break
    tensors = [torch.from_numpy(np.asarray(i).transpose(2, 0, 1).copy()) for i in images]
    batch = torch.stack([torch.from_numpy(np.asarray(i.resize((500, 375))).transpose(2, 0, 1).copy()) for i in images])
    return {"images": images, "tensors": tensors, "batch": [batch]}


def seconds(transform, pictures: list, n: int, clock) -> float:
    """Median over the rounds of the time per picture."""
    for p in pictures[:4]:
        transform(p)
    times, end = [], time.perf_counter() + BUDGET
    while len(times) < 3 or (time.perf_counter() < end and len(times) < MOST_ROUNDS):
        begin = clock()
        for p in pictures:
            transform(p)
        times.append((clock() - begin) / n)
    return statistics.median(times)


def timed(rival: str, make, name: str, given: list, n: int, threads: int, clock) -> float:
    """For PyTorch, the better of one thread and all: its threads slow each other down on small pictures."""
    if rival != "torchvision":
        return seconds(make(name), given, n, clock)
    times = []
    for count in {1, threads}:
        torch.set_num_threads(count)
        times.append(seconds(make(name), given, n, clock))
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pictures", type=int, default=24)
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS))
    parser.add_argument("--wall", action="store_true", help="count the time that passes, not that of the processor")
    args = parser.parse_args()
    clock = time.perf_counter if args.wall else time.process_time
    pictures = inputs(args.data, args.pictures)
    n = len(pictures["images"])
    found, missing = {}, []
    for rival in args.rivals:
        try:
            make = RIVALS[rival](args.threads)
        except ImportError as e:
            missing.append(f"{rival} ({e})")
            continue
        for name in ("val", "rrc", "jitter", "blur", "resize", "crop", "flip", "grey"):
            for kind, given in pictures.items():
                try:
                    found[rival, name, kind] = timed(rival, make, name, given, n, args.threads, clock) * 1e6
                except Exception as e:
                    print(f"{rival} {name} {kind}: {type(e).__name__}: {str(e).strip().splitlines()[-1][:120]}")
    lines = [
        "# Transforms by torchvision's names on the CPU",
        "",
        f"Microseconds {'' if args.wall else 'of the processor '}for one picture, {n} photographs in memory, "
        f"{args.threads} threads (torchvision: the better of one and all), PyTorch {torch.__version__}; median of 3 to "
        f"{MOST_ROUNDS} rounds in one process on {os.cpu_count()} cores. `images` and `tensors` (CHW) come one by one, "
        "`batch` is one tensor NCHW of 375 x 500. A ratio above 1 is in penstock's favour; a dash is what a rival "
        "can't do.",
        "",
        "| transforms | input | penstock | torchvision | ratio | DALI | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios: dict[str, list[float]] = {"torchvision": [], "DALI": []}
    for rival, name, kind in found:
        if rival != "penstock":
            continue
        ours = found[rival, name, kind]
        cells = []
        for other in ("torchvision", "DALI"):
            theirs = found.get((other, name, kind))
            cells += [f"{theirs:.0f}" if theirs else "-", f"{theirs / ours:.2f}" if theirs else "-"]
            ratios[other] += [theirs / ours] if theirs else []
        lines.append(f"| {name} | {kind} | {ours:.0f} | {' | '.join(cells)} |")
    for other, values in ratios.items():
        if values:
            median, losses = statistics.median(values), sum(v < 1 for v in values)
            lines += ["", f"Against {other}: median {median:.2f}x, {losses} of {len(values)} slower."]
    lines += ["", *(f"Not installed: {m}." for m in missing)]
    text = "\n".join(lines).rstrip() + "\n"
    print(text)
    (Path(__file__).parent / "results" / "torchvision_transforms.md").write_text(text)


if __name__ == "__main__":
    main()
