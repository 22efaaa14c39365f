# SPDX-License-Identifier: Apache-2.0
"""Images per second of JPEG files: transforms of torchvision and of penstock in a DataLoader of two workers, and a
pipeline of as many threads.

`python bench/transforms_in_loaders.py --data FOLDER`, with a folder of photographs. Writes
results/transforms_in_loaders.md: the time that passes, the median of rounds in which all take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import measure
import torch
from PIL import Image
from torchvision.transforms import v2

from penstock import fn, pipeline_def, transforms, types
from penstock.experimental import torchvision as shim
from transforms import MEAN, RECIPES, STD

WORKERS, BATCH = 2, 64
AHEAD = 4  # more batches than a pipeline makes ahead


class Files(torch.utils.data.Dataset):
    def __init__(self, files: list[str], transform):
        self.files, self.transform = files, transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i: int):
        return self.transform(Image.open(self.files[i]).convert("RGB"))


def of_shim(name: str):
    """The same with penstock's transforms by DALI's names, whose Normalize takes bytes."""
    scaled = shim.Normalize([255 * m for m in MEAN], [255 * s for s in STD])
    if name == "val":
        return shim.Compose([shim.Resize(256), shim.CenterCrop(224), shim.PILToTensor(), scaled])
    return shim.Compose([shim.RandomResizedCrop(224), shim.RandomHorizontalFlip(), shim.PILToTensor(), scaled])


def loader(transform, files: list[str]):
    return torch.utils.data.DataLoader(Files(files, transform), BATCH, num_workers=WORKERS, persistent_workers=True)


def pipeline(name: str, files: list[str], rule: str):
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

    return pipe()


def per_second(batches, made_before: int) -> float:
    """Pictures per second, without the first batches, which a pipeline made during other measurements."""
    n, begin = 0, time.perf_counter()
    for i, batch in enumerate(batches()):
        n += len(batch) if i >= made_before else 0
        begin = time.perf_counter() if i < made_before else begin
    return n / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--images", type=int, default=512, help="in a round")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    files = [str(p) for p in sorted(args.data.rglob("*.jpg")) if min(Image.open(p).size) >= 240][:256]
    files = (files * (args.images // len(files) + 1))[: args.images]
    busy = os.getloadavg()[0]
    lines = [
        "# torchvision's recipes in a DataLoader",
        "",
        f"{measure.machine()} Load before: {busy:.0f}.",
        "",
        f"Images per second of JPEG files, {WORKERS} workers of a DataLoader or threads of a pipeline, batches of "
        f"{BATCH}, PyTorch {torch.__version__}; medians of {args.rounds} rounds in turn, and the "
        "least and the most. In a DataLoader, Pillow decodes the files.",
        "",
        "| recipe | torchvision, DataLoader | penstock.transforms, DataLoader | penstock.experimental.torchvision, "
        'DataLoader | pipeline, rule="pillow" | pipeline |',
        "|---|---|---|---|---|---|",
    ]
    for name in ("val", "rrc"):
        loaders = [loader(t, files) for t in (RECIPES[name](v2), RECIPES[name](transforms), of_shim(name))]
        pipes = [pipeline(name, files, rule) for rule in ("pillow", "dali")]
        runs = [lambda x=x: x for x in loaders]
        runs += [lambda p=p: (p.run()[0] for _ in range(AHEAD - (-len(files) // BATCH))) for p in pipes]
        found: list[list[float]] = [[] for _ in runs]
        for k in range(args.rounds + 1):
            for i, run in enumerate(runs):
                value = per_second(run, AHEAD if i >= len(loaders) else 0)
                found[i] += [value] if k else []  # the first round warms up
        cells = [f"{statistics.median(v):.0f} ({min(v):.0f} to {max(v):.0f})" for v in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
        del loaders, pipes, runs
    (Path(__file__).parent / "results" / "transforms_in_loaders.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
