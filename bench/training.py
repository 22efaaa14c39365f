# SPDX-License-Identifier: Apache-2.0
"""What a loader costs a training: images/s of ResNets in bf16 with one batch repeated, fed by penstock, by DALI, and by
a DataLoader, in the same run.

    python bench/training.py --data FOLDER [--batch 256] [--seconds 20] [--only resnet50]
    python bench/training.py --data FOLDER --gpus 2       # DistributedDataParallel, a process for each GPU

Without a GPU all train and decode on the CPU: that only shows that the program runs."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import measure
from images_cpu import MEAN, STD, files

CORES = sorted(os.sched_getaffinity(0))
FEW = 4  # cores of the contenders that have few
_GPUS, _STORE, _RANK = "PENSTOCK_BENCH_GPUS", "PENSTOCK_BENCH_STORE", "PENSTOCK_BENCH_RANK"
Loader = Callable[[argparse.Namespace, int, int], Iterator[tuple[Any, Any]]]  # options, rank, number of processes
# At least so much of the speed with one batch repeated.
LEAST = {
    ("resnet50", "penstock, mixed"): 0.99,
    ("resnet50", "penstock, CPU"): 0.995,
    ("resnet18", "penstock, mixed"): 0.98,
    ("resnet18", "penstock, CPU"): 0.995,
    ("resnet50", f"penstock, mixed, {FEW} cores"): 0.985,
    ("resnet18", f"penstock, mixed, {FEW} cores"): 0.97,
}


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def synthetic(o: argparse.Namespace, rank: int, world: int) -> Iterator[tuple[Any, Any]]:
    import torch

    device = torch.device("cuda", rank) if has_gpu() else torch.device("cpu")
    images = torch.randn(o.batch, 3, 224, 224, device=device).half()
    labels = torch.randint(1000, (o.batch,), device=device)
    while True:
        yield images, labels


def loader(module: str, decoder: str, load: float | None = None) -> Loader:
    """The same definition for both libraries: decoded on the GPU ("mixed"), or made on the CPU and copied."""

    def batches(o: argparse.Namespace, rank: int, world: int) -> Iterator[tuple[Any, Any]]:
        if module == "penstock":
            from penstock import fn, pipeline_def, types
            from penstock.plugin.pytorch import DALIGenericIterator
        else:
            from nvidia.dali import fn, pipeline_def, types
            from nvidia.dali.plugin.pytorch import DALIGenericIterator
        gpu = has_gpu()
        threads = min(o.threads, len(os.sched_getaffinity(0)))

        @pipeline_def(batch_size=o.batch, num_threads=threads, device_id=rank if gpu else None, seed=1 + rank)
        def pipe() -> tuple[Any, Any]:
            jpegs, labels = fn.readers.file(
                files=files(o, "photos500"), random_shuffle=True, shard_id=rank, num_shards=world, name="reader"
            )
            given = {} if load is None else {"hw_decoder_load": load}
            images = fn.decoders.image_random_crop(jpegs, device=decoder if gpu else "cpu", **given)
            images = fn.resize(images, resize_x=224, resize_y=224)
            images = fn.crop_mirror_normalize(
                images, mirror=fn.random.coin_flip(), dtype=types.FLOAT16, output_layout="CHW", mean=MEAN, std=STD
            )
            return (images.gpu(), labels.gpu()) if gpu else (images, labels)

        iterator = DALIGenericIterator([pipe()], ["image", "label"], size=-1)
        for (batch,) in iterator:
            yield batch["image"], batch["label"].flatten().long()

    return batches


def data_loader(o: argparse.Namespace, rank: int, world: int) -> Iterator[tuple[Any, Any]]:
    """PyTorch's with torchvision's transforms."""
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32)]
    transform = v2.Compose([*steps, v2.Normalize(MEAN, STD), v2.ToDtype(torch.float16)])

    class Photographs(torch.utils.data.Dataset):
        paths = files(o, "photos500")[rank::world]

        def __len__(self) -> int:
            return 1 << 30

        def __getitem__(self, i: int) -> tuple[Any, int]:
            return transform(decode_image(self.paths[i % len(self.paths)], ImageReadMode.RGB)), i % 1000

    workers = max(min(o.threads, len(os.sched_getaffinity(0))) - 2, 1)
    device = torch.device("cuda", rank) if has_gpu() else torch.device("cpu")
    made = torch.utils.data.DataLoader(Photographs(), o.batch, num_workers=workers, pin_memory=has_gpu())
    for images, labels in made:
        yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def training(model_name: str, load: Loader, cores: int | None = None) -> measure.Contender:
    """Trains for ever; gives how many images each step took, over all processes."""

    def contender(o: argparse.Namespace) -> Iterator[int]:
        if cores is not None:
            os.sched_setaffinity(0, CORES[:cores])
        import torch
        from resnet import resnet

        gpu, world, rank = has_gpu(), int(os.environ.get(_GPUS, 1)), int(os.environ.get(_RANK, 0))
        device = torch.device("cuda", rank) if gpu else torch.device("cpu")
        if gpu:
            torch.cuda.set_device(device)
            torch.backends.cudnn.benchmark = True
        model: Any = resnet(model_name).to(device, memory_format=torch.channels_last)
        if world > 1:
            _join(o, rank, world, gpu)
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank] if gpu else None)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        under_way: deque[Any] = deque()
        for images, labels in load(o, rank, world):
            with torch.autocast(device.type, torch.bfloat16):
                output = model(images.contiguous(memory_format=torch.channels_last))
                loss = torch.nn.functional.cross_entropy(output, labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if gpu:  # two steps at most are asked for ahead, so that what is counted was done
                under_way.append(torch.cuda.Event())
                under_way[-1].record()
                if len(under_way) > 2:
                    under_way.popleft().synchronize()
            yield o.batch * world

    return contender


def _join(o: argparse.Namespace, rank: int, world: int, gpu: bool) -> None:
    """Starts the other processes from the first one; each ends when the one that has started it does."""
    import torch.distributed as dist

    if rank == 0:
        os.environ[_STORE] = tempfile.mktemp(prefix="penstock-bench-")
        for other in range(1, world):
            environment = {**os.environ, _RANK: str(other)}
            subprocess.Popen([sys.executable, *sys.argv], env=environment, stdout=subprocess.DEVNULL)
    else:
        parent = os.getppid()

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(0.2)
            os._exit(0)

        threading.Thread(target=watch, daemon=True).start()
    store = f"file://{os.environ[_STORE]}"
    dist.init_process_group("nccl" if gpu else "gloo", init_method=store, rank=rank, world_size=world)


LOADERS: dict[str, tuple[Loader, int | None]] = {
    "one batch repeated": (synthetic, None),
    "penstock, mixed": (loader("penstock", "mixed"), None),
    "penstock, CPU": (loader("penstock", "cpu"), None),
    f"penstock, mixed, {FEW} cores": (loader("penstock", "mixed"), FEW),
    f"penstock, CPU, {FEW} cores": (loader("penstock", "cpu"), FEW),
    "penstock, mixed, JPEG engine allowed": (loader("penstock", "mixed", 0.65), None),
    "DALI, mixed": (loader("nvidia.dali", "mixed"), None),
    "DALI, CPU": (loader("nvidia.dali", "cpu"), None),
    f"DALI, mixed, {FEW} cores": (loader("nvidia.dali", "mixed"), FEW),
    "DataLoader": (data_loader, None),
}
MODELS = ("resnet50", "resnet18")
CONTENDERS = {
    f"{model}: {name}": training(model, load, cores) for model in MODELS for name, (load, cores) in LOADERS.items()
}


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.set_defaults(batch=256, threads=min(16, len(CORES)), seconds=20.0)
    parser.add_argument("--gpus", type=int, default=1, help="processes of a training, one for each GPU")
    o = parser.parse_args()
    if o.worker:
        if int(os.environ.get(_RANK, 0)):
            for _ in CONTENDERS[o.worker](o):
                pass
        measure.work(CONTENDERS[o.worker], o)
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    os.environ[_GPUS] = str(o.gpus)
    gpu = has_gpu()
    names = [n for n in CONTENDERS if re.search(o.only, n) and (gpu or "mixed" not in n)]
    results = measure.measure(__file__, names, o)
    lines = [
        "# What a loader costs a training",
        "",
        measure.machine(),
        f"{_device(o.gpus)}. {len(files(o, 'photos500'))} photographs, bf16, batches of {o.batch} for each process, "
        f"{o.threads} threads, medians of {o.rounds} interleaved runs of {o.seconds:g} s. "
        f"{measure.versions('nvidia-dali-cuda130', 'torch', 'torchvision')}.",
        "Written by `bench/training.py`.",
        "",
        "| training | images/s | least | most | of the speed with one batch repeated | at least | |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        model, _, fed = name.partition(": ")
        ceiling = results.get(f"{model}: one batch repeated")
        share = r["images_per_s"] / ceiling["images_per_s"] if ceiling else None
        least = LEAST.get((model, fed)) if gpu else None
        verdict = "" if share is None or least is None else "reached" if share >= least else "**missed**"
        lines.append(
            f"| {name} | {r['images_per_s']:.1f} | {r['least']:.1f} | {r['most']:.1f} | "
            f"{'' if share is None else f'{share:.1%}'} | {'' if least is None else f'{least:.1%}'} | {verdict} |"
        )
    measure.write(o.out, f"training{f'_{o.gpus}_gpus' if o.gpus > 1 else ''}.md", "\n".join(lines) + "\n")


def _device(gpus: int) -> str:
    import torch

    if not torch.cuda.is_available():
        return "No GPU: all on the CPU, which shows only that the program runs"
    return f"{gpus} x {torch.cuda.get_device_name(0)}"


if __name__ == "__main__":
    main()
