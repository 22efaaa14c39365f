# SPDX-License-Identifier: Apache-2.0
"""`penstock.transforms` against torchvision, whose pixels it has, on one thread.

`python bench/transforms.py --data FOLDER`, with a folder of photographs. Both get the same pictures, in memory: images
of Pillow and tensors CHW one by one, and a batch NCHW. Writes results/transforms.md: processor time, which other work
on the machine hardly changes. Before anything is timed, the results of both are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import measure
import numpy as np
import torch
from torchvision.transforms import InterpolationMode as Mode
from torchvision.transforms import v2

from penstock import transforms
from torchvision_transforms import inputs

MOST_ROUNDS = 51
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

# Single transforms, and those that take only tensors, of bytes or of floats, or only batches.
SINGLE = {
    "resize, bilinear": lambda t: t.Resize((224, 224)),
    "resize, bicubic": lambda t: t.Resize((224, 224), Mode.BICUBIC),
    "resize, nearest": lambda t: t.Resize((224, 224), Mode.NEAREST),
    "resize, nearest-exact": lambda t: t.Resize((224, 224), Mode.NEAREST_EXACT),
    "resize, box": lambda t: t.Resize((224, 224), Mode.BOX),
    "resize, lanczos": lambda t: t.Resize((224, 224), Mode.LANCZOS),
    "resize, not antialiased": lambda t: t.Resize((224, 224), antialias=False),
    "RandomResizedCrop": lambda t: t.RandomResizedCrop(224),
    "CenterCrop": lambda t: t.CenterCrop(224),
    "RandomCrop": lambda t: t.RandomCrop(224, padding=8),
    "Pad": lambda t: t.Pad(16),
    "Pad, reflect": lambda t: t.Pad(16, padding_mode="reflect"),
    "RandomHorizontalFlip": lambda t: t.RandomHorizontalFlip(1.0),
    "RandomVerticalFlip": lambda t: t.RandomVerticalFlip(1.0),
    "RandomRotation": lambda t: t.RandomRotation(30),
    "RandomAffine": lambda t: t.RandomAffine(30, (0.1, 0.1), (0.8, 1.2), 10),
    "RandomPerspective": lambda t: t.RandomPerspective(0.5, 1.0),
    "ColorJitter": lambda t: t.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "Grayscale": lambda t: t.Grayscale(3),
    "GaussianBlur": lambda t: t.GaussianBlur(9, (0.1, 2.0)),
    "RandomInvert": lambda t: t.RandomInvert(1.0),
    "RandomPosterize": lambda t: t.RandomPosterize(4, 1.0),
    "RandomSolarize": lambda t: t.RandomSolarize(128, 1.0),
    "RandomAdjustSharpness": lambda t: t.RandomAdjustSharpness(1.7, 1.0),
    "RandomAutocontrast": lambda t: t.RandomAutocontrast(1.0),
    "RandomEqualize": lambda t: t.RandomEqualize(1.0),
    "AutoAugment": lambda t: t.AutoAugment(),
    "RandAugment": lambda t: t.RandAugment(),
    "TrivialAugmentWide": lambda t: t.TrivialAugmentWide(),
    "AugMix": lambda t: t.AugMix(),
    "ToImage": lambda t: t.ToImage(),
    "PILToTensor": lambda t: t.PILToTensor(),
    "ToTensor": lambda t: t.ToTensor(),
    "ToDtype": lambda t: t.ToDtype(torch.float32, scale=True),
    "ConvertImageDtype": lambda t: t.ConvertImageDtype(torch.float32),
    "RandomErasing": lambda t: t.RandomErasing(1.0),
    "Normalize": lambda t: t.Normalize(MEAN, STD),
    "MixUp": lambda t: t.MixUp(num_classes=10),
    "CutMix": lambda t: t.CutMix(num_classes=10),
}
ONLY = {
    **dict.fromkeys(("ToImage", "PILToTensor", "ToTensor", "resize, box", "resize, lanczos"), ("images",)),
    **dict.fromkeys(("resize, not antialiased", "ToDtype", "ConvertImageDtype", "RandomErasing"), ("tensors", "batch")),
    "Normalize": ("floats",),
    **dict.fromkeys(("MixUp", "CutMix"), ("labelled",)),
}


def val(t):
    return t.Compose([t.Resize(256), t.CenterCrop(224), *end(t)])


def rrc(t):
    return t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), *end(t)])


def end(t):
    return [t.ToImage(), t.ToDtype(torch.float32, scale=True), t.Normalize(MEAN, STD)]


RECIPES = {"val": val, "rrc": rrc}


def same(a, b) -> bool:
    if isinstance(a, tuple):
        return all(map(same, a, b))
    if not isinstance(a, torch.Tensor):
        return a.tobytes() == b.tobytes()
    return torch.allclose(a, torch.as_tensor(b), rtol=1e-6, atol=1e-6)


def seconds(both, pictures: list, n: int, budget: float) -> np.ndarray:
    """Times per picture (2, rounds); the two take turns."""
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + budget
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < MOST_ROUNDS):
        for t, found in zip(both, times) if len(times[0]) % 2 else list(zip(both, times))[::-1]:
            torch.manual_seed(len(found))
            begin = time.process_time()
            for p in pictures:
                t(p)
            found.append((time.process_time() - begin) / n)
    return np.array(times)


def check(name: str, kind: str, ours, theirs, pictures: list) -> None:
    for i, x in enumerate(pictures[:4]):
        torch.manual_seed(i)
        expected = theirs(x)
        torch.manual_seed(i)
        if not same(ours(x), expected):
            raise SystemExit(f"{name} of {kind}: other pixels than torchvision's")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--pictures", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.5, help="how long a case is measured, but for five rounds")
    parser.add_argument("--only", default="", help="what the name begins with; writes no result")
    args = parser.parse_args()
    torch.set_num_threads(1)
    busy = os.getloadavg()[0]
    pictures = inputs(args.data, args.pictures)
    n = len(pictures["images"])
    batch = pictures["batch"][0].float() / 255
    pictures |= {"floats": [batch], "labelled": [(batch, torch.arange(n) % 10)]}
    lines = [
        "# Transforms with torchvision's pixels",
        "",
        f"{measure.machine()} Load before: {busy:.0f}.",
        "",
        f"Microseconds of the processor for one picture, {n} photographs in memory, one thread, PyTorch "
        f"{torch.__version__}, the same parameters and the same pixels for both; medians of 5 to {MOST_ROUNDS} rounds, "
        "in turn. `images` and `tensors` (CHW) come one by one; `batch` is one tensor NCHW of bytes, 375 x 500, "
        "`floats` one of floats, and `labelled` one with labels. A ratio above 1 is in penstock's favour: the median "
        "of the rounds; beside it, their quartiles.",
        "",
        "| transform | input | penstock | torchvision | ratio | quartiles |",
        "|---|---|---|---|---|---|",
    ]
    ratios = []
    for name, make in {**RECIPES, **SINGLE}.items():
        if not name.startswith(args.only):
            continue
        for kind in ONLY.get(name, ("images", "tensors", "batch")):
            ours, theirs = make(transforms), make(v2)
            check(name, kind, ours, theirs, pictures[kind])
            times = seconds((ours, theirs), pictures[kind], n, args.seconds)
            a, b = np.median(times, 1) * 1e6
            low, middle, high = np.quantile(times[1] / times[0], (0.25, 0.5, 0.75))
            ratios.append(middle)
            lines.append(f"| {name} | {kind} | {a:.0f} | {b:.0f} | {middle:.2f} | {low:.2f} to {high:.2f} |")
            print(lines[-1], flush=True)
    slower = sum(r < 1 for r in ratios)
    lines += ["", f"Median {statistics.median(ratios):.2f}; {slower} of {len(ratios)} are slower than torchvision's."]
    if not args.only:
        (Path(__file__).parent / "results" / "transforms.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
