# SPDX-License-Identifier: Apache-2.0
"""JPEG files on disk to training batches on the CPU: penstock against DALI's CPU backend and PyTorch's DataLoader
with Pillow.

    python bench/more_photographs.py FOLDER TARGET      # three files of each photograph, for more than 200 of them
    python bench/images_cpu.py --data TARGET --rounds 5 --seconds 3
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import measure

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


def folder(o: argparse.Namespace, name: str) -> str:
    """The folder `name` of --data, or --data itself if there is none."""
    path = Path(o.data) / name
    return str(path if path.is_dir() else o.data)


def files(o: argparse.Namespace, name: str) -> list[str]:
    return sorted(str(p) for p in Path(folder(o, name)).rglob("*.jpg"))


def pipeline(o: argparse.Namespace, module: str, task: str, photos: str, **decode):
    """The same pipeline for both libraries."""
    if module == "penstock":
        from penstock import fn, pipeline_def, types
    else:
        from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=o.batch, num_threads=o.threads, device_id=None, prefetch_queue_depth=2, seed=1)
    def pipe():
        jpegs, labels = fn.readers.file(files=files(o, photos), random_shuffle=True, name="reader")
        mirror = fn.random.coin_flip()
        normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": MEAN, "std": STD}
        if task == "decode":
            return fn.decoders.image(jpegs, output_type=types.RGB), labels
        if task == "val":
            images = fn.decoders.image(jpegs, output_type=types.RGB, **decode)
            images = fn.resize(images, resize_shorter=256)
            return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise), labels
        if task == "rrc":
            images = fn.decoders.image(jpegs, output_type=types.RGB)
            images = fn.random_resized_crop(images, size=(224, 224))
        else:
            images = fn.decoders.image_random_crop(jpegs, output_type=types.RGB)
            images = fn.resize(images, resize_x=224, resize_y=224)
        return fn.crop_mirror_normalize(images, mirror=mirror, **normalise), labels

    built = pipe()
    built.build()
    return built


RUNNING: list = []


def python_share() -> dict[str, float]:
    """Processor time of Python while batches are produced, as a share of a core, as counted by penstock."""
    stats = getattr(RUNNING[0], "stats", None) if RUNNING else None
    return {"python": stats()["python_share_of_a_core"]} if stats else {}


def batches(module: str, task: str, photos: str = "photos500", **decode):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        p = pipeline(o, module, task, photos, **decode)
        RUNNING.append(p)
        while True:
            yield len(p.run()[0])

    return contender


def pytorch(o: argparse.Namespace) -> Iterator[int]:
    """torch.utils.data.DataLoader, worker processes, Pillow: resize 256, centre crop 224, normalise."""
    import numpy as np
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    mean, std = np.float32(MEAN), np.float32(STD)

    class Photos(torch.utils.data.Dataset):
        paths = files(o, "photos500")

        def __len__(self):
            return 1 << 30

        def __getitem__(self, i):
            image = Image.open(self.paths[i % len(self.paths)]).convert("RGB")
            w, h = image.size
            s = 256 / min(w, h)
            image = image.resize((round(w * s), round(h * s)), Image.Resampling.BILINEAR)
            x, y = (image.width - 224) // 2, (image.height - 224) // 2
            pixels = (np.asarray(image.crop((x, y, x + 224, y + 224)), np.float32) - mean) / std
            return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))), i % 10

    for x, _ in torch.utils.data.DataLoader(Photos(), o.batch, num_workers=o.threads):
        yield len(x)


CONTENDERS = {
    "val: penstock": batches("penstock", "val"),
    "val: DALI": batches("nvidia.dali", "val"),
    "val: PyTorch DataLoader + Pillow": pytorch,
    "rrc: penstock": batches("penstock", "rrc"),
    "rrc: DALI, fused": batches("nvidia.dali", "fused"),
    "rrc: DALI, unfused": batches("nvidia.dali", "rrc"),
    "decode: penstock": batches("penstock", "decode"),
    "decode: DALI": batches("nvidia.dali", "decode"),
    "val1280: penstock": batches("penstock", "val", "photos1280"),
    "val1280: penstock, DCT scaling": batches("penstock", "val", "photos1280", dct_scaling=256),
    "val1280: DALI": batches("nvidia.dali", "val", "photos1280"),
}
CLAIMS = [
    ("val, against DALI", "val: penstock", "val: DALI", 4.0),
    ("val, against PyTorch DataLoader + Pillow", "val: penstock", "val: PyTorch DataLoader + Pillow", 3.5),
    ("rrc, against DALI's fused image_random_crop", "rrc: penstock", "rrc: DALI, fused", 2.5),
    ("rrc, against DALI's random_resized_crop", "rrc: penstock", "rrc: DALI, unfused", None),
    ("decode, against DALI", "decode: penstock", "decode: DALI", 1.6),
    ("decode, against libjpeg-turbo alone", "decode: penstock", "decode: libjpeg-turbo alone", 0.92),
    ("val on 1280 pixels, exact", "val1280: penstock", "val1280: DALI", 2.5),
    ("val on 1280 pixels, DCT scaling", "val1280: penstock, DCT scaling", "val1280: DALI", 3.3),
]


def alone(o: argparse.Namespace) -> Iterator[int]:
    """libjpeg-turbo called from C, one process per thread, files in memory, output dropped:
    bench/native/decode_alone.c."""
    source = Path(__file__).parent / "native" / "decode_alone.c"
    with tempfile.TemporaryDirectory() as folder:
        binary = str(Path(folder) / "decode_alone")
        subprocess.run(["cc", "-O3", str(source), "-o", binary, "-ljpeg"], check=True)
        photos = files(o, "photos500")
        rounds = max(1, round(o.seconds * 1500 / len(photos)))
        processes = [
            subprocess.Popen([binary, str(rounds), *photos], stdout=subprocess.PIPE, text=True)
            for _ in range(o.threads)
        ]
        rates = [float(p.communicate()[0].split("best round,")[1].split()[0]) for p in processes]
    print(json.dumps({"images_per_s": sum(rates)}), flush=True)
    sys.exit(0)
    yield 0


CONTENDERS["decode: libjpeg-turbo alone"] = alone


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    if o.worker:
        measure.work(CONTENDERS[o.worker], o, python_share)
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    results = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    lines = [
        "# From JPEG files to training batches on the CPU",
        "",
        measure.machine(),
        f"{len(files(o, 'photos500'))} + {len(files(o, 'photos1280'))} photographs, batch {o.batch}, "
        f"{o.threads} threads, medians of {o.rounds} "
        f"interleaved runs of {o.seconds:g} s, with the least and the most. "
        f"{measure.versions('nvidia-dali-cuda130', 'torch', 'pillow', 'numpy')}.",
        "Written by `bench/images_cpu.py`.",
        "",
        "| | images/s | least | most | resident MB | CPU s per 1000 images |",
        "|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        cpu = f"{1000 * r['cpu_s'] / (r['images_per_s'] * o.seconds):.2f}" if "cpu_s" in r else "-"
        memory = f"{r['rss_mb']:.0f}" if "rss_mb" in r else "-"
        spread = " | ".join(f"{r[k]:.0f}" for k in ("least", "most"))
        lines.append(f"| {name} | {r['images_per_s']:.0f} | {spread} | {memory} | {cpu} |")
    lines += ["", "| claim | ratio | at least | |", "|---|---|---|---|"]
    for text, ours, theirs, least in CLAIMS:
        if ours in results and theirs in results:
            ratio = results[ours]["images_per_s"] / results[theirs]["images_per_s"]
            verdict = "" if least is None else "reached" if ratio >= least else "**missed**"
            lines.append(f"| {text} | {ratio:.2f} | {'' if least is None else least} | {verdict} |")
    if "val: penstock" in results and "val: DALI" in results:
        ours, theirs = results["val: penstock"]["rss_mb"], results["val: DALI"]["rss_mb"]
        lines.append(
            f"| resident memory in the val run, MB: {ours:.0f} against {theirs:.0f} | {ours / theirs:.2f} | "
            f"below 1 | {'reached' if ours < theirs else '**missed**'} |"
        )
    if "val: penstock" in results:
        share = results["val: penstock"]["python"]
        verdict = "reached" if share < 0.05 else "**missed**"
        lines.append(f"| Python in the val run, share of one core | {share:.3f} | below 0.05 | {verdict} |")
    measure.write(o.out, "images_cpu.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
