# SPDX-License-Identifier: Apache-2.0
"""JPEG files on disk to training batches on the GPU: penstock against DALI's mixed decoders, at the best of several
settings of DALI; and on the same machine's CPU against DALI and torchvision."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator

import measure
from images_cpu import MEAN, STD, files

THREADS = len(os.sched_getaffinity(0))
LOADS = (0.65, 0.75, 0.9)  # DALI's default is 0.65; with 1.0, its CPU threads would be idle


def pipeline(o: argparse.Namespace, module: str, task: str, threads: int, device: str, load: float | None):
    """The same pipeline for both libraries."""
    if module == "penstock":
        from penstock import fn, pipeline_def, types
    else:
        from nvidia.dali import fn, pipeline_def, types
    gpu = device == "mixed"

    @pipeline_def(batch_size=o.batch, num_threads=threads, device_id=0 if gpu else None, seed=1)
    def pipe():
        jpegs, labels = fn.readers.file(files=files(o, "photos500"), random_shuffle=True, name="reader")
        mirror = fn.random.coin_flip()
        normalise = {"dtype": types.FLOAT, "output_layout": "CHW", "mean": MEAN, "std": STD}
        decode = {"device": device, "output_type": types.RGB}
        if load is not None:
            decode["hw_decoder_load"] = load
        labels = labels.gpu() if gpu else labels
        if task == "decode":
            return fn.decoders.image(jpegs, **decode), labels
        if task == "val":
            images = fn.resize(fn.decoders.image(jpegs, **decode), resize_shorter=256)
            return fn.crop_mirror_normalize(images, crop=(224, 224), **normalise), labels
        if task == "rrc":
            images = fn.random_resized_crop(fn.decoders.image(jpegs, **decode), size=(224, 224))
        else:
            images = fn.decoders.image_random_crop(jpegs, **decode)
            images = fn.resize(images, resize_x=224, resize_y=224)
        return fn.crop_mirror_normalize(images, mirror=mirror, **normalise), labels

    built = pipe()
    built.build()
    return built


RUNNING: list = []


def batches(module: str, task: str, threads: int = THREADS, device: str = "mixed", load: float | None = None):
    def contender(o: argparse.Namespace) -> Iterator[int]:
        p = pipeline(o, module, task, threads, device, load)
        RUNNING.append(p)
        while True:
            yield len(p.run()[0])

    return contender


def known() -> dict[str, float]:
    """Penstock's statistics of its run: shares of the decoders, times of the GPU and of Python."""
    if not RUNNING or not hasattr(RUNNING[0], "stats"):
        return {}
    stats = RUNNING[0].stats()
    facts = {"python_ms": stats["python_ms_per_batch"], "native_ms": stats["native_ms_per_batch"]}
    gpu = stats.as_dict().get("gpu")
    if gpu:
        total = sum(gpu["decoders"].values()) or 1
        facts |= {f"share of {name}": n / total for name, n in gpu["decoders"].items()}
        facts |= {f"ms of {name}": ms for name, ms in gpu["ms_per_batch"].items()}
        facts["driver_ms"] = gpu["driver_ms_per_batch"]
        facts["gpu_mb"] = gpu["peak_memory_mb"]
    return facts


def forget() -> None:
    """Resets the statistics, so that one-time work (compiling kernels, pinning memory, making records) is not
    counted."""
    if RUNNING and hasattr(RUNNING[0], "reset_stats"):
        RUNNING[0].reset_stats()


def torchvision(o: argparse.Namespace) -> Iterator[int]:
    """torchvision's decode_image and v2 transforms in a DataLoader."""
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    transform = v2.Compose(
        [
            v2.Resize(256, antialias=True),
            v2.CenterCrop(224),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([m / 255 for m in MEAN], [s / 255 for s in STD]),
        ]
    )

    class Photos(torch.utils.data.Dataset):
        paths = files(o, "photos500")

        def __len__(self):
            return 1 << 30

        def __getitem__(self, i):
            return transform(decode_image(self.paths[i % len(self.paths)], ImageReadMode.RGB)), i % 10

    for x, _ in torch.utils.data.DataLoader(Photos(), o.batch, num_workers=THREADS):
        yield len(x)


def _dali(task: str, threads: tuple[int, ...]) -> dict:
    return {
        f"{task}: DALI, {t} threads, load {load}": batches("nvidia.dali", task.split()[0], t, "mixed", load)
        for t in threads
        for load in LOADS
    }


CONTENDERS = {
    "decode: penstock": batches("penstock", "decode"),
    "JPEG engine allowed, decode: penstock": batches("penstock", "decode", load=0.65),
    **_dali("decode", (THREADS,)),
    "val: penstock": batches("penstock", "val"),
    "JPEG engine allowed, val: penstock": batches("penstock", "val", load=0.65),
    **_dali("val", (THREADS, THREADS // 2)),
    "rrc: penstock": batches("penstock", "rrc"),
    **_dali("rrc", (THREADS,)),
    **_dali("fused rrc", (THREADS, THREADS // 2, 4)),
    "val, 4 threads: penstock": batches("penstock", "val", 4),
    **{f"val, 4 threads: DALI, load {x}": batches("nvidia.dali", "val", 4, "mixed", x) for x in LOADS},
    "CPU val: penstock": batches("penstock", "val", device="cpu"),
    "CPU val: DALI": batches("nvidia.dali", "val", device="cpu"),
    "CPU val: torchvision in a DataLoader": torchvision,
    "CPU rrc: penstock": batches("penstock", "rrc", device="cpu"),
    "CPU rrc: DALI, fused": batches("nvidia.dali", "fused", device="cpu"),
}
# Loaders with processes first return batches that they made before, so short measurements are misleading.
LEAST_SECONDS = {"CPU val: torchvision in a DataLoader": 6.0}
# Rivals are all settings of DALI, which is sometimes faster with fewer threads.
CLAIMS = [
    ("decode, mixed", "decode: penstock", "decode: DALI", None),
    ("val, mixed", "val: penstock", ("val: DALI", "val, 4 threads: DALI"), 1.25),
    ("rrc, mixed, against the better form of DALI", "rrc: penstock", ("rrc: DALI", "fused rrc: DALI"), 1.25),
    ("val, mixed, 4 threads", "val, 4 threads: penstock", "val, 4 threads: DALI", 1.5),
    ("val on the CPU", "CPU val: penstock", "CPU val: DALI", 3.0),
    ("rrc on the CPU", "CPU rrc: penstock", "CPU rrc: DALI", 2.0),
    ("val on the CPU, against torchvision", "CPU val: penstock", "CPU val: torchvision", 1.2),
]


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.set_defaults(batch=256, threads=THREADS)
    o = parser.parse_args()
    if o.worker:
        o.seconds = max(o.seconds, LEAST_SECONDS.get(o.worker, 0))
        measure.work(CONTENDERS[o.worker], o, known, forget)
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    results = measure.measure(__file__, [n for n in CONTENDERS if re.search(o.only, n)], o)
    lines = [
        "# From JPEG files to training batches on the GPU",
        "",
        measure.machine(),
        f"{_gpu()}. {len(files(o, 'photos500'))} photographs, batch {o.batch}, {THREADS} threads where nothing is "
        f"said, "
        f"medians of {o.rounds} interleaved runs of {o.seconds:g} s (torchvision: at least 6). "
        f"{measure.versions('nvidia-dali-cuda130', 'torch', 'torchvision', 'numpy')}.",
        "Written by `bench/images_gpu.py`. Python, native and driver calls: processor time, after the warm-up, of the "
        "pipeline's threads that run Python and of the calls that ask for batches; native calls are those that take "
        "a while, such as reading headers, and driver calls are no part of them. Native threads that read and decode "
        "are not in it, nor are times in which a thread waits.",
        "",
        "| | images/s | resident MB | CPU s per 1000 images | Python, ms a batch | native calls, "
        "ms a batch | driver calls, ms a batch | "
        "decoders' shares | kernels, ms a batch |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        cpu = 1000 * r["cpu_s"] / (r["images_per_s"] * r["seconds"])
        shares = ", ".join(f"{k[9:]} {v:.0%}" for k, v in r.items() if k.startswith("share of ") and v)
        times = ", ".join(f"{k[6:]} {v:.3f}" for k, v in r.items() if k.startswith("ms of "))
        python = f"{r['python_ms']:.2f}" if "python_ms" in r else ""
        native = f"{r['native_ms']:.2f}" if "native_ms" in r else ""
        driver = f"{r['driver_ms']:.2f}" if "driver_ms" in r else ""
        row = f"| {name} | {r['images_per_s']:.0f} | {r['rss_mb']:.0f} | {cpu:.3f} | {python} | {native} | {driver} |"
        lines.append(f"{row} {shares} | {times} |")
    lines += ["", "| claim | ratio | at least | | the rival's best |", "|---|---|---|---|---|"]
    for text, ours, theirs, least in CLAIMS:
        rivals = {n: r["images_per_s"] for n, r in results.items() if n.startswith(theirs)}
        if ours in results and rivals:
            best = max(rivals, key=rivals.__getitem__)
            ratio = results[ours]["images_per_s"] / rivals[best]
            verdict = "" if least is None else "reached" if ratio >= least else "**missed**"
            lines.append(f"| {text} | {ratio:.2f} | {'' if least is None else least} | {verdict} | {best} |")
    if "val: penstock" in results:
        ms = results["val: penstock"]["python_ms"]
        lines.append(
            f"| Python in val, ms a batch | {ms:.2f} | below 0.8 | {'reached' if ms < 0.8 else '**missed**'} | |"
        )
    measure.write(o.out, "images_gpu.md", "\n".join(lines) + "\n")


def _gpu() -> str:
    try:
        from penstock.gpu.driver import Device, driver_version

        return f"{Device.get(0).name}, driver for CUDA {driver_version()}"
    except Exception as e:
        return f"no GPU ({e})"


if __name__ == "__main__":
    main()
