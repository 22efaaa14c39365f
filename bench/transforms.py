# SPDX-License-Identifier: Apache-2.0
"""`penstock.transforms` against torchvision, whose pixels it has, on one thread.

`python bench/transforms.py --data FOLDER`, with a folder of photographs. Both get the same pictures, in memory: images
of Pillow and tensors CHW one by one, and a batch NCHW. Writes results/transforms.md: processor time, which other work
on the machine hardly changes. Before anything is timed, the results of both are compared. Then images per second of
files that are decoded: in a DataLoader with two workers, and in a pipeline of as many threads.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch
from PIL import Image
from torchvision.transforms import v2

from penstock import fn, pipeline_def, transforms, types
from torchvision_transforms import BUDGET, MOST_ROUNDS, inputs

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
WORKERS, BATCH, IMAGES = 2, 64, 1024
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


def seconds(both, pictures: list, n: int) -> list[float]:
    """The median of the rounds' times for one picture; the two take turns."""
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + 2 * BUDGET
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < MOST_ROUNDS):
        for t, found in zip(both, times) if len(times[0]) % 2 else list(zip(both, times))[::-1]:
            torch.manual_seed(len(found))
            begin = time.process_time()
            for p in pictures:
                t(p)
            found.append((time.process_time() - begin) / n)
    return [statistics.median(found) for found in times]


class Files(torch.utils.data.Dataset):
    def __init__(self, files: list[str], transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i: int):
        return self.transform(Image.open(self.files[i]).convert("RGB"))


def per_second(batches) -> float:
    """Images, after one epoch that warms up."""
    for _ in batches():
        pass
    begin, n = time.perf_counter(), 0
    for batch in batches():
        n += len(batch)
    return n / (time.perf_counter() - begin)


def in_a_loader(t, name: str, files: list[str]) -> float:
    data = Files(files, recipe(t, name))
    loader = torch.utils.data.DataLoader(data, BATCH, num_workers=WORKERS, persistent_workers=True)
    return per_second(lambda: loader)


def in_a_pipeline(name: str, files: list[str], rule: str) -> float:
    @pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None, seed=0)
    def pipe():
        x = fn.decoders.image(fn.readers.file(files=files)[0])
        if name == "val":
            x = fn.resize(x, resize_shorter=256, rule=rule)
        else:
            x = fn.random_resized_crop(x, size=224, rule=rule)
        mirror = fn.random.coin_flip() if name == "rrc" else 0
        scaled = {"mean": [255 * m for m in MEAN], "std": [255 * s for s in STD], "dtype": types.FLOAT}
        return fn.crop_mirror_normalize(x, crop=(224, 224), mirror=mirror, output_layout="CHW", **scaled)

    made = pipe()
    return per_second(lambda: (made.run()[0] for _ in range(-(-len(files) // BATCH))))


def loaders(folder: Path) -> list[str]:
    files = [str(p) for p in sorted(folder.rglob("*.jpg")) if min(Image.open(p).size) >= 240][:256]
    files = (files * (IMAGES // len(files) + 1))[:IMAGES]
    lines = [
        "",
        f"Images per second of JPEG files, {WORKERS} workers of a DataLoader or threads of a pipeline, "
        f"batches of {BATCH}:",
        "",
        '| recipe | torchvision, DataLoader | penstock.transforms, DataLoader | pipeline, rule="pillow" | pipeline |',
        "|---|---|---|---|---|",
    ]
    for name in ("val", "rrc"):
        found = [in_a_loader(v2, name, files), in_a_loader(transforms, name, files)]
        found += [in_a_pipeline(name, files, rule) for rule in ("pillow", "dali")]
        lines.append(f"| {name} | {' | '.join(f'{v:.0f}' for v in found)} |")
        print(lines[-1], flush=True)
    return lines


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
            for i, x in enumerate(given[:4]):
                torch.manual_seed(i)
                expected = theirs(x)
                torch.manual_seed(i)
                if not same(ours(x), expected):
                    raise SystemExit(f"{name} of {kind}: other pixels than torchvision's")
            times = [t * 1e6 for t in seconds((ours, theirs), given, n)]
            lines.append(f"| {name} | {kind} | {times[0]:.0f} | {times[1]:.0f} | {times[1] / times[0]:.2f} |")
            print(lines[-1], flush=True)
    lines += loaders(args.data)
    (Path(__file__).parent / "results" / "transforms.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
