# SPDX-License-Identifier: Apache-2.0
"""Images per second of training pipelines with AutoAugment, RandAugment and TrivialAugment, in penstock and in DALI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure

TASKS = {
    "AutoAugment, ImageNet's policy": lambda m, x: m.auto_augment.auto_augment(x),
    "RandAugment, n=2, m=9": lambda m, x: m.rand_augment.rand_augment(x, n=2, m=9),
    "TrivialAugment Wide": lambda m, x: m.trivial_augment.trivial_augment_wide(x),
    "none": lambda m, x: x,
}


def _modules(library: str) -> Any:
    if library == "penstock":
        import penstock as root
        from penstock import fn, types
        from penstock.auto_aug import auto_augment, rand_augment, trivial_augment
    else:
        import nvidia.dali as root
        from nvidia.dali import fn, types
        from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment
    names = {"root": root, "fn": fn, "types": types, "auto_augment": auto_augment}
    return argparse.Namespace(**names, rand_augment=rand_augment, trivial_augment=trivial_augment)


def contender(task: str, library: str, gpu: bool) -> Callable[[argparse.Namespace], Iterator[int]]:
    def run(o: argparse.Namespace) -> Iterator[int]:
        m = _modules(library)
        fn, types = m.fn, m.types
        files = sorted(map(str, Path(o.data, "photos500").rglob("*.jpg")))
        augment = TASKS[task]

        def define() -> Any:
            jpegs, labels = fn.readers.file(files=files, random_shuffle=True, name="reader")
            device = "mixed" if gpu else "cpu"
            if library == "DALI":  # its fused decoder is faster
                images = fn.decoders.image_random_crop(jpegs, device=device)
                images = fn.resize(images, size=[224, 224])
            else:
                images = fn.random_resized_crop(fn.decoders.image(jpegs, device=device), size=[224, 224])
            images = fn.flip(images, horizontal=fn.random.coin_flip())
            images = augment(m, images)
            images = fn.crop_mirror_normalize(
                images, dtype=types.FLOAT, output_layout="CHW", mean=[124.0, 116.0, 104.0], std=[58.0, 57.0, 57.0]
            )
            return images, labels

        pipe = m.root.pipeline_def(
            define,
            batch_size=o.batch,
            num_threads=o.threads,
            device_id=0 if gpu else None,
            seed=1,
            enable_conditionals=True,
        )()
        while True:
            pipe.run()
            yield o.batch

    return run


CONTENDERS = {
    f"{task}: {library} on the {'GPU' if gpu else 'CPU'}": contender(task, library, gpu)
    for gpu in (False, True)
    for task in TASKS
    for library in ("penstock", "DALI")
}


def main() -> None:
    p = measure.arguments(__doc__)
    p.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where images are augmented")
    o = p.parse_args()
    if o.worker:
        measure.work(CONTENDERS[o.worker], o)
    where = o.device.upper()
    results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n and n.endswith(where)], o)
    bar = 2.0 if o.device == "cpu" else 1.1
    lines = [
        f"# Automatic augmentation on the {where}",
        "",
        measure.machine(),
        f"JPEG, random resized crop to 224, flip, augmentation, normalisation to float CHW; batches of {o.batch}, "
        f"{o.threads} threads; images per second, medians of {o.rounds} interleaved runs of {o.seconds:g} s. "
        f"{measure.versions('nvidia-dali-cuda130', 'numpy')}. DALI decodes by its fused `image_random_crop`. Written "
        f"by `bench/auto_aug.py --device {o.device}`.",
        "",
        f"| | penstock | DALI | ratio | at least {bar} |",
        "|---|---|---|---|---|",
    ]
    for task in TASKS:
        ours, theirs = (results.get(f"{task}: {library} on the {where}") for library in ("penstock", "DALI"))
        if ours and theirs:
            a, b = ours["images_per_s"], theirs["images_per_s"]
            claim = "" if task == "none" else "reached" if a / b >= bar else "**missed**"
            lines.append(f"| {task} | {a:.0f} | {b:.0f} | {a / b:.2f} | {claim} |")
        else:
            print(f"{task}: not measured", file=sys.stderr)
    measure.write(o.out, "auto_aug.md" if o.device == "cpu" else "auto_aug_gpu.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
