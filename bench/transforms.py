# SPDX-License-Identifier: Apache-2.0
"""`penstock.transforms` against torchvision, whose pixels it has, on one thread.

`python bench/transforms.py --data FOLDER`, with a folder of photographs. Both get the same pictures, in memory: images
of Pillow and tensors CHW one by one, and a batch NCHW. Writes results/transforms.md: processor time, which other work
on the machine hardly changes. Before anything is timed, the results of both are compared.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from torchvision.transforms import v2

from penstock import transforms
from torchvision_transforms import inputs, seconds

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
NAMES = ("val", "rrc", "jitter", "blur", "resize", "crop", "flip", "grey", "rotate", "augment")


def recipe(t, name: str):
    end = [t.ToImage(), t.ToDtype(torch.float32, scale=True)]
    lists = {
        "val": [t.Resize(256), t.CenterCrop(224), *end, t.Normalize(MEAN, STD)],
        "rrc": [t.RandomResizedCrop(224), t.RandomHorizontalFlip(), *end, t.Normalize(MEAN, STD)],
        "jitter": [t.ColorJitter(0.4, 0.4, 0.4, 0.1)],
        "blur": [t.GaussianBlur(9, (0.1, 2.0))],
        "resize": [t.Resize((224, 224))],
        "crop": [t.RandomCrop(224, padding=8)],
        "flip": [t.RandomHorizontalFlip(1.0)],
        "grey": [t.Grayscale(3)],
        "rotate": [t.RandomRotation(30)],
        "augment": [t.RandAugment()],
    }
    steps = lists[name]
    return t.Compose(steps) if len(steps) > 1 else steps[0]


def same(a, b) -> bool:
    if not isinstance(a, torch.Tensor):
        return a.tobytes() == b.tobytes()
    return torch.allclose(a, torch.as_tensor(b), rtol=1e-6, atol=1e-6)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--pictures", type=int, default=16)
    args = parser.parse_args()
    torch.set_num_threads(1)
    pictures = inputs(args.data, args.pictures)
    n = len(pictures["images"])
    lines = [
        "# Transforms with torchvision's pixels",
        "",
        f"Microseconds of the processor for one picture, {n} photographs in memory, one thread, PyTorch "
        f"{torch.__version__}, the same parameters for both. `images` and `tensors` (CHW) come one by one, `batch` is "
        "one tensor NCHW of 375 x 500. A ratio above 1 is in penstock's favour.",
        "",
        "| transforms | input | penstock | torchvision | ratio |",
        "|---|---|---|---|---|",
    ]
    for name in NAMES:
        ours, theirs = recipe(transforms, name), recipe(v2, name)
        for kind, given in pictures.items():
            times = []
            for t in (ours, theirs):
                torch.manual_seed(0)
                times.append(seconds(t, given, n, time.process_time) * 1e6)
            for i, x in enumerate(given[:4]):
                torch.manual_seed(i)
                expected = theirs(x)
                torch.manual_seed(i)
                if not same(ours(x), expected):
                    raise SystemExit(f"{name} of {kind}: other pixels than torchvision's")
            lines.append(f"| {name} | {kind} | {times[0]:.0f} | {times[1]:.0f} | {times[1] / times[0]:.2f} |")
            print(lines[-1], flush=True)
    (Path(__file__).parent / "results" / "transforms.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
