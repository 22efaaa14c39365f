# SPDX-License-Identifier: Apache-2.0
"""What a loader costs a training: images/s of ResNets in bf16 with one batch repeated, fed by penstock, by DALI, and by
a DataLoader.

    python bench/training.py --data FOLDER [--batch 256] [--seconds 3] [--only resnet50]
    python bench/training.py --data FOLDER --gpus 2       # DistributedDataParallel, a process for each GPU

All loaders feed the same model by turns, in one process (one more for those with few cores): cuDNN chooses its
algorithms by measurement, so the same training is up to 1 % faster or slower in another process. Without a GPU all
train and decode on the CPU: that only shows that the program runs."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
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
FEW = 4  # cores of loaders with few cores
REPEATED = "one batch repeated"
MIXED, TUNED, ON_GPU = "penstock, mixed", "penstock, mixed, autotune", "penstock, mixed, decode_on=gpu"
TUNING_S = 30.0  # seconds of training before the measurement, in which a pipeline chooses where to decode
_GPUS, _STORE, _RANK = "PENSTOCK_BENCH_GPUS", "PENSTOCK_BENCH_STORE", "PENSTOCK_BENCH_RANK"
Loader = Callable[[argparse.Namespace, int, int], Iterator[tuple[Any, Any]]]  # options, rank, number of processes
# The smallest share of the speed with one batch repeated.
LEAST = {
    ("resnet50", MIXED): 0.99,
    ("resnet50", TUNED): 0.99,
    ("resnet18", TUNED): 0.98,
    ("resnet50", "penstock, CPU"): 0.995,
    ("resnet18", MIXED): 0.98,
    ("resnet18", "penstock, CPU"): 0.995,
    ("resnet50", f"{MIXED}, {FEW} cores"): 0.985,
    ("resnet18", f"{MIXED}, {FEW} cores"): 0.97,
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


def loader(module: str, decoder: str, load: float | None = None, **arguments: Any) -> Loader:
    """The same pipeline for both libraries: decoded on the GPU ("mixed"), or made on the CPU and copied. `arguments` of
    the pipeline are penstock's."""

    def batches(o: argparse.Namespace, rank: int, world: int) -> Iterator[tuple[Any, Any]]:
        if module == "penstock":
            from penstock import fn, pipeline_def, types
            from penstock.plugin.pytorch import DALIGenericIterator
        else:
            from nvidia.dali import fn, pipeline_def, types
            from nvidia.dali.plugin.pytorch import DALIGenericIterator
        gpu = has_gpu()
        threads = min(o.threads, len(os.sched_getaffinity(0)))

        @pipeline_def(
            batch_size=o.batch, num_threads=threads, device_id=rank if gpu else None, seed=1 + rank, **arguments
        )
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
    """PyTorch's DataLoader with torchvision's transforms."""
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


class Training:
    """A model, trained with any batches."""

    def __init__(self, o: argparse.Namespace, model_name: str, rank: int, world: int):
        import torch
        from resnet import resnet

        self._gpu = has_gpu()
        device = torch.device("cuda", rank) if self._gpu else torch.device("cpu")
        if self._gpu:
            torch.cuda.set_device(device)
            torch.backends.cudnn.benchmark = True
        self._model: Any = resnet(model_name).to(device, memory_format=torch.channels_last)
        if world > 1:
            _join(o, rank, world, self._gpu)
            ids = [rank] if self._gpu else None
            self._model = torch.nn.parallel.DistributedDataParallel(self._model, device_ids=ids)
        self._optimizer = torch.optim.SGD(self._model.parameters(), 0.1, momentum=0.9)
        self._device = device

    def seconds(self, batches: Iterator[tuple[Any, Any]], steps: int) -> float:
        """Time of `steps` steps. At most two are submitted ahead of the GPU, as in most trainings."""
        import torch

        under_way: deque[Any] = deque()
        start = time.perf_counter()
        for _ in range(steps):
            images, labels = next(batches)
            with torch.autocast(self._device.type, torch.bfloat16):
                output = self._model(images.contiguous(memory_format=torch.channels_last))
                loss = torch.nn.functional.cross_entropy(output, labels)
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self._optimizer.step()
            if self._gpu:
                under_way.append(torch.cuda.Event())
                under_way[-1].record()
                if len(under_way) > 2:
                    under_way.popleft().synchronize()
        if self._gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - start


def train(o: argparse.Namespace, model_name: str, names: list[str]) -> None:
    """In a separate process per GPU: the loaders take turns; prints the images/s of each turn as JSON."""
    world, rank = int(os.environ.get(_GPUS, 1)), int(os.environ.get(_RANK, 0))
    training = Training(o, model_name, rank, world)
    feeds: dict[str, Iterator[tuple[Any, Any]]] = {}
    steps: dict[str, int] = {}
    for name in names:
        try:
            feed = LOADERS[name](o, rank, world)
            training.seconds(feed, 10)  # warms up memory, algorithms and caches
            steps[name] = max(round(_agreed(10 * o.seconds / training.seconds(feed, 10), world)), 1)
            if name in (MIXED, TUNED):
                training.seconds(feed, round(steps[name] * TUNING_S / o.seconds))
        except Exception as e:
            print(f"{name}: could not run: {e}", file=sys.stderr)
            continue
        feeds[name] = feed
    rates: dict[str, list[float]] = {name: [] for name in feeds}
    for _ in range(o.rounds):
        for name, feed in feeds.items():
            training.seconds(feed, steps[name] // 3 + 1)  # uses up the batches made during others' turns
            rates[name].append(steps[name] * o.batch * world / training.seconds(feed, steps[name]))
    if rank == 0:
        print(json.dumps(rates), flush=True)
    os._exit(0)  # rivals may take long to shut down


def _agreed(value: float, world: int) -> float:
    """The value of the first process, for all processes."""
    if world == 1:
        return value
    import torch.distributed as dist

    values = [value]
    dist.broadcast_object_list(values)
    return values[0]


def _join(o: argparse.Namespace, rank: int, world: int, gpu: bool) -> None:
    """Joins the processes; the first one starts the others, which end when it does."""
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


LOADERS: dict[str, Loader] = {
    REPEATED: synthetic,
    MIXED: loader("penstock", "mixed"),
    ON_GPU: loader("penstock", "mixed", decode_on="gpu"),
    "penstock, CPU": loader("penstock", "cpu"),
    "penstock, mixed, JPEG engine allowed": loader("penstock", "mixed", 0.65),
    TUNED: loader("penstock", "mixed", autotune=True),
    "DALI, mixed": loader("nvidia.dali", "mixed"),
    "DALI, CPU": loader("nvidia.dali", "cpu"),
    "DataLoader": data_loader,
}
MODELS = ("resnet50", "resnet18")
# For each number of cores (None: all), the loaders to measure.
GROUPS: dict[int | None, list[str]] = {None: list(LOADERS), FEW: [n for n in LOADERS if "engine" not in n]}


def name_of(model: str, feed: str, cores: int | None) -> str:
    return f"{model}: {feed}{f', {cores} cores' if cores else ''}"


def measured(o: argparse.Namespace) -> dict[str, list[float]]:
    """The images/s of each turn, by the name of the table row."""
    rates = {}
    for model in MODELS:
        for cores, feeds in GROUPS.items():
            chosen = [
                n for n in feeds if re.search(o.only, name_of(model, n, cores)) and (has_gpu() or "mixed" not in n)
            ]
            if not set(chosen) - {REPEATED}:
                continue
            given = dict(data=o.data, threads=o.threads, batch=o.batch, seconds=o.seconds, rounds=o.rounds, gpus=o.gpus)
            options = [part for option, value in given.items() for part in (f"--{option}", str(value))]
            job = json.dumps([model, cores, [REPEATED, *(n for n in chosen if n != REPEATED)]])
            run = subprocess.run(
                [sys.executable, __file__, "--worker", job, *options], stdout=subprocess.PIPE, text=True
            )
            if run.returncode:
                sys.exit(f"{model}: failed, see above")
            found = json.loads(run.stdout.splitlines()[-1])
            rates |= {name_of(model, feed, cores): turns for feed, turns in found.items()}
    return rates


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.set_defaults(batch=256, threads=min(16, len(CORES)), seconds=3.0)
    parser.add_argument("--gpus", type=int, default=1, help="processes of a training, one for each GPU")
    o = parser.parse_args()
    if o.worker:
        model, cores, names = json.loads(o.worker)
        if cores:
            rank = int(os.environ.get(_RANK, 0))
            os.sched_setaffinity(0, CORES[rank * cores : (rank + 1) * cores] or CORES[:cores])
        train(o, model, names)
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    os.environ[_GPUS] = str(o.gpus)
    lines = [
        f"# What a loader costs a training{f' on {o.gpus} GPUs' if o.gpus > 1 else ''}",
        "",
        measure.machine(),
        f"{_device(o.gpus)}. {len(files(o, 'photos500'))} photographs, bf16, batches of {o.batch} for each process, "
        f"{o.threads} threads, {o.rounds} turns of {o.seconds:g} s for each loader in the same process: medians. "
        f"Shares are medians over the turns, too. {measure.versions('nvidia-dali-cuda130', 'torch', 'torchvision')}.",
        "Written by `bench/training.py`.",
        "",
        "| training | images/s | least | most | of the speed with one batch repeated | at least | |",
        "|---|---|---|---|---|---|---|",
    ]
    results = measured(o)
    for name, turns in results.items():
        model, _, fed = name.partition(": ")
        ceiling = results[name_of(model, REPEATED, FEW if fed.endswith(" cores") else None)]
        share = statistics.median(rate / most for rate, most in zip(turns, ceiling))
        least = LEAST.get((model, fed)) if has_gpu() else None
        verdict = "" if least is None else "reached" if share >= least else "**missed**"
        lines.append(
            f"| {name} | {statistics.median(turns):.1f} | {min(turns):.1f} | {max(turns):.1f} | {share:.2%} | "
            f"{'' if least is None else f'{least:.1%}'} | {verdict} |"
        )
    measure.write(o.out, f"training{f'_{o.gpus}_gpus' if o.gpus > 1 else ''}.md", "\n".join(lines) + "\n")


def _device(gpus: int) -> str:
    import torch

    if not torch.cuda.is_available():
        return "No GPU: all on the CPU, which shows only that the program runs"
    return f"{gpus} x {torch.cuda.get_device_name(0)}"


if __name__ == "__main__":
    main()
