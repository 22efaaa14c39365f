# SPDX-License-Identifier: Apache-2.0
"""What iterating through the iterators of frameworks costs over the bare `pipe.run()` on the val pipeline.

By default of PyTorch and JAX. `--frameworks TensorFlow` and `--frameworks PaddlePaddle` are run one by one, in the
environment of `make frameworks`. `--device gpu` decodes by the mixed decoders and leaves the batches on the GPU."""

from __future__ import annotations

import importlib
import statistics
import sys
import time

import images_gpu
import measure
from images_cpu import pipeline

MODULES = {"PyTorch": "torch", "JAX": "jax", "TensorFlow": "tensorflow", "PaddlePaddle": "paddle"}
# Batches of an iterator before and during its measurement. Iterators take turns, so that drift of the machine affects
# all of them. The first batches bring queues, caches and the decoders' shares to their steady state.
WARM, SLICE = {"cpu": 4, "gpu": 48}, {"cpu": 16, "gpu": 96}


def sources(o) -> dict:
    """For each iterator, a function that returns the next batch. Each has its own pipeline."""
    if o.device == "gpu":
        make = lambda: images_gpu.pipeline(o, "penstock", "val", o.threads, "mixed", None)
    else:
        make = lambda: pipeline(o, "penstock", "val", "photos500")
    iterators = {name: iterator(name, make()).__next__ for name in o.frameworks.split(",")}
    return {"pipe.run()": make().run, **iterators, "pipe.run() again": make().run}


def iterator(framework: str, pipe):
    if framework == "TensorFlow":
        from penstock.plugin.tf import DALIDataset

        return iter(DALIDataset(pipe))
    plugin = importlib.import_module("penstock.plugin." + {"PaddlePaddle": "paddle"}.get(framework, framework.lower()))
    return plugin.DALIGenericIterator(pipe, ["images", "labels"], size=10**9)


def slice_of(following, o) -> tuple[float, float]:
    """Seconds per batch, and the consumer thread's CPU seconds per batch, in the middle of a run: the queue and the GPU
    are as busy at the end as at the beginning."""
    for _ in range(WARM[o.device]):
        kept = following()
    begin, own = time.perf_counter(), time.thread_time()
    for _ in range(SLICE[o.device]):
        kept = following()  # noqa: F841  as a training step keeps its batch
    return (time.perf_counter() - begin) / SLICE[o.device], (time.thread_time() - own) / SLICE[o.device]


def work(o) -> dict[str, tuple[float, float, float]]:
    """For each iterator, medians of the seconds per batch, of the overhead relative to `pipe.run()` in the same round,
    and of the consumer thread's CPU seconds per batch."""
    faces = sources(o)
    rounds: list[dict[str, tuple[float, float]]] = []
    for i in range(2 * o.rounds + 1):
        order = list(faces)[:: 1 if i % 2 else -1]
        times = {face: slice_of(faces[face], o) for face in order}
        if i:
            rounds.append(times)
    bare = [statistics.mean(t for f, (t, _) in r.items() if f.startswith("pipe.run()")) for r in rounds]
    return {
        f: (
            statistics.median(r[f][0] for r in rounds),
            statistics.median(r[f][0] / b for r, b in zip(rounds, bare)) - 1,
            statistics.median(r[f][1] for r in rounds),
        )
        for f in faces
    }


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="where the batches are made")
    parser.add_argument("--frameworks", default="PyTorch,JAX", help=f"of {', '.join(MODULES)}")
    o = parser.parse_args()
    names = o.frameworks.split(",")
    if not o.data:
        sys.exit("no data: give --data FOLDER with JPEG files, or set PENSTOCK_DATA")
    times = work(o)
    lines = ["| | images/s | over pipe.run() | consumer's own time per batch |", "|---|---|---|---|"]
    for face, (wall, over, own) in times.items():
        lines.append(f"| {face} | {o.batch / wall:,.0f} | {over:+.1%} | {own * 1e6:,.0f} us |")
    versions = ", ".join(f"{MODULES[f]} {sys.modules[MODULES[f]].__version__}" for f in names)
    suffix = "" if names == ["PyTorch", "JAX"] else "_" + "_".join(names).lower()
    where = ", on the GPU" if o.device == "gpu" else ""
    text = f"""# Iterators{where}

{__doc__.splitlines()[0]}
At most 3 % is wanted. Batch {o.batch}, {o.threads} threads; the faces take turns in slices of {SLICE[o.device]}
batches, behind {WARM[o.device]} that are not measured, in one process, medians of {2 * o.rounds} slices.
`pipe.run()` is measured twice to show the noise; what is over it is over the mean of both in the same round.
The consumer's own time is the processor time of the thread that asks for batches.

{chr(10).join(lines)}

{measure.machine()} {versions}.
"""
    measure.write(o.out, f"iterators{'_gpu' * (o.device == 'gpu')}{suffix}.md", text)


if __name__ == "__main__":
    main()
