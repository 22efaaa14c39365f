# SPDX-License-Identifier: Apache-2.0
"""Ray Data with and without penstock: read, decode and resize JPEG files, on the same cores.

Give --data a folder of photographs, such as bench/more_photographs.py writes. Each file is read --repeat times in an
epoch, so that what Ray needs to begin and end one counts little. Whole epochs are timed, after one that is not.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure

SIDE = 224
BLOCKS_PER_CPU = 4  # Ray's default of 200 blocks is slower here
LEAST = 3.0
OURS = {
    "read_penstock": "`penstock.plugin.ray.read_penstock`",
    "stage": "`read_binary_files`, and `map_batches` with `penstock.plugin.ray.Stage`",
    "penstock": "penstock without Ray, in one process",
}
THEIRS = {
    "read_images": "Ray Data's `read_images(size=...)`",
    "pillow": "`read_binary_files`, and `map_batches` with Pillow",
    "opencv": "`read_binary_files`, and `map_batches` with OpenCV",
    "torchvision": "`read_binary_files`, and `map_batches` with torchvision",
}
PART = {"bytes": "`read_binary_files` alone, nothing decoded"}


def files(o: argparse.Namespace) -> list[str]:
    found = sorted(map(str, Path(o.data).rglob("*.jpg")))
    return found * o.repeat


def connected(o: argparse.Namespace) -> Any:
    import ray

    ray.init(
        num_cpus=o.threads,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=1 << 30,
        runtime_env={"env_vars": {"PYTHONPATH": str(measure.ROOT / "src")}},
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def batches_of(ds: Any, o: argparse.Namespace, column: str = "image") -> Iterator[int]:
    for batch in ds.iter_batches(batch_size=o.batch, batch_format="numpy", prefetch_batches=2):
        yield len(batch[column])


def read_images(o: argparse.Namespace) -> Callable[[], Iterator[int]]:
    ray = connected(o)
    ds = ray.data.read_images(files(o), size=(SIDE, SIDE), mode="RGB", override_num_blocks=BLOCKS_PER_CPU * o.threads)
    return lambda: batches_of(ds, o)


def binary_files(o: argparse.Namespace) -> Any:
    return connected(o).data.read_binary_files(files(o), override_num_blocks=BLOCKS_PER_CPU * o.threads)


def bytes_only(o: argparse.Namespace) -> Callable[[], Iterator[int]]:
    ds = binary_files(o)
    return lambda: batches_of(ds, o, "bytes")


def by_function(decode: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Callable[[], Iterator[int]]]:
    def contender(o: argparse.Namespace) -> Callable[[], Iterator[int]]:
        ds = binary_files(o)
        ds = ds.map_batches(decode, batch_format="numpy", batch_size=o.batch)
        return lambda: batches_of(ds, o)

    return contender


def pillow(batch: dict[str, Any]) -> dict[str, Any]:
    import numpy as np
    from PIL import Image

    pictures = (Image.open(io.BytesIO(x)).convert("RGB") for x in batch["bytes"])
    return {"image": np.stack([np.asarray(p.resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for p in pictures])}


def opencv(batch: dict[str, Any]) -> dict[str, Any]:
    import cv2
    import numpy as np

    cv2.setNumThreads(1)
    pictures = (cv2.imdecode(np.frombuffer(x, np.uint8), cv2.IMREAD_COLOR) for x in batch["bytes"])
    small = (cv2.resize(p, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR) for p in pictures)
    return {"image": np.stack([cv2.cvtColor(p, cv2.COLOR_BGR2RGB) for p in small])}


def torchvision(batch: dict[str, Any]) -> dict[str, Any]:
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)
    data = (torch.frombuffer(bytearray(x), dtype=torch.uint8) for x in batch["bytes"])
    pictures = (decode_jpeg(d, mode=ImageReadMode.RGB) for d in data)
    return {"image": torch.stack([functional.resize(p, [SIDE, SIDE], antialias=True) for p in pictures]).numpy()}


def definition(o: argparse.Namespace) -> Any:
    from penstock import fn, pipeline_def

    @pipeline_def(batch_size=o.batch, seed=1)
    def pipe(reads: bool) -> Any:
        jpegs = fn.readers.file(files=files(o), name="files")[0] if reads else fn.external_source(name="bytes")
        return fn.resize(fn.decoders.image(jpegs), size=(SIDE, SIDE))

    return pipe


def read_penstock(o: argparse.Namespace) -> Callable[[], Iterator[int]]:
    from penstock.plugin.ray import read_penstock

    connected(o)
    ds = read_penstock(definition(o), reads=True, output_names=["image"])
    return lambda: batches_of(ds, o)


def stage(o: argparse.Namespace) -> Callable[[], Iterator[int]]:
    from penstock.plugin.ray import Stage

    ds = binary_files(o)
    made = Stage(definition(o), reads=False, output_names=["image"])
    ds = ds.map_batches(made, batch_format="numpy", batch_size=o.batch)
    return lambda: batches_of(ds, o)


def penstock(o: argparse.Namespace) -> Callable[[], Iterator[int]]:
    pipe = definition(o)(reads=True, num_threads=o.threads)
    pipe.build()
    total = len(files(o))

    def epoch() -> Iterator[int]:
        for _ in range(total // o.batch):
            yield len(pipe.run()[0].as_array())

    return epoch


CONTENDERS = {
    "read_penstock": read_penstock,
    "stage": stage,
    "penstock": penstock,
    "read_images": read_images,
    "bytes": bytes_only,
    **{f.__name__: by_function(f) for f in (pillow, opencv, torchvision)},
}


def work(o: argparse.Namespace) -> None:
    """Measures in a separate process."""
    epoch = CONTENDERS[o.worker](o)
    sum(epoch())
    images, start = 0, time.perf_counter()
    while time.perf_counter() < start + o.seconds:
        images += sum(epoch())
    print("\n" + json.dumps({"images_per_s": images / (time.perf_counter() - start)}), flush=True)
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    os._exit(0)


def with_kept(file: Path, found: dict[str, Any], o: argparse.Namespace) -> dict[str, Any]:
    """Medians that include earlier parts; `o.rounds` becomes the total number of rounds."""
    pieces = [*(json.loads(file.read_text()) if file.exists() else []), {"rounds": o.rounds, "found": found}]
    file.write_text(json.dumps(pieces))
    o.rounds = sum(p["rounds"] for p in pieces)
    all_of_them: dict[str, Any] = {}
    for name in CONTENDERS:
        some = [p["found"][name] for p in pieces if name in p["found"]]
        if some:
            rate = statistics.median(x["images_per_s"] for x in some)
            least, most = min(x["least"] for x in some), max(x["most"] for x in some)
            all_of_them[name] = {"images_per_s": rate, "least": least, "most": most}
    return all_of_them


def main() -> None:
    p = measure.arguments(__doc__)
    p.add_argument("--repeat", type=int, default=4, help="how often an epoch has each file")
    p.add_argument("--keep", default="", help="a JSON file that keeps rounds, for measurements that are made in pieces")
    o = p.parse_args()
    if o.worker:
        return work(o)
    if not o.data or not files(o):
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    found = measure.measure(__file__, [n for n in CONTENDERS if o.only in n], o)
    if o.keep:
        found = with_kept(Path(o.keep), found, o)
    lines = [
        "| | images/s (least to most) | against the best of Ray Data alone | at least | |",
        "|---|---|---|---|---|",
    ]
    best = max(found[n]["images_per_s"] for n in THEIRS if n in found)
    for name, what in {**OURS, **THEIRS, **PART}.items():
        if name not in found:
            continue
        rate = found[name]["images_per_s"]
        judged = " | "
        if name in ("read_penstock", "stage"):
            judged = f"{LEAST} | {'reached' if rate >= LEAST * best else '**missed**'}"
        spread = f"{rate:.0f} ({found[name]['least']:.0f} to {found[name]['most']:.0f})"
        lines.append(f"| {what} | {spread} | {rate / best:.2f} | {judged} |")
    n = len(files(o)) // o.repeat
    text = f"""# Ray Data with and without penstock

Read {n} photographs of about 500x375 pixels, decode them and resize them to {SIDE}x{SIDE}; the program takes batches of
{o.batch} as NumPy arrays. Ray has {o.threads} CPUs; penstock without Ray has {o.threads} threads. Medians of
{o.rounds} interleaved rounds, each of whole epochs of {n * o.repeat} images in at least {o.seconds} s.
`bench/ray_data.py` writes this.

{chr(10).join(lines)}

{measure.versions("ray", "pillow", "opencv-python-headless", "torch", "torchvision", "numpy")}.
{measure.machine()}
"""
    measure.write(o.out, "ray_data.md", text)


if __name__ == "__main__":
    main()
