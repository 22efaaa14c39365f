# SPDX-License-Identifier: Apache-2.0
"""Requests/s in the Triton Inference Server: decode, resize, normalise, against Pillow and NumPy in the same backend.

Needs the wheel nvidia-pytriton in a virtual environment of its own, with NumPy < 2 and Pillow: $PENSTOCK_TRITON.
"""

from __future__ import annotations

import heapq
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import measure
import numpy as np
import triton_load

sys.path[:0] = [str(measure.ROOT / "src"), str(measure.ROOT / "tests" / "plugin")]
import triton_server  # noqa: E402

from penstock import fn, pipeline_def, types  # noqa: E402
from penstock.plugin.triton import repository  # noqa: E402

CLIENTS = 16
BATCH = 16
SIDE = 224
ANSWER_BYTES = 3 * SIDE * SIDE * 4
LEAST, MOST = 3.0, 2.0  # times Pillow's rate; p99 over the median
# glibc gives large blocks back to the system and takes new ones for each answer, by default: a tenth of the time.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(4 << 30)}
PILLOW = """
import io
import numpy as np
import triton_python_backend_utils as backend
from PIL import Image

MEAN, STD = np.float32([124, 116, 104]), np.float32([58, 57, 57])

class TritonPythonModel:
    def execute(self, requests):
        return [self.one(r) for r in requests]

    def one(self, request):
        data = backend.get_input_tensor_by_name(request, "DATA").as_numpy()
        image = Image.open(io.BytesIO(data.tobytes())).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
        made = ((np.asarray(image, np.float32) - MEAN) / STD).transpose(2, 0, 1)[None]
        return backend.InferenceResponse(output_tensors=[backend.Tensor("OUTPUT_0", np.ascontiguousarray(made))])
"""
EMPTY = """
import numpy as np
import triton_python_backend_utils as backend

class TritonPythonModel:
    def execute(self, requests):
        made = np.zeros((1, 3, 224, 224), np.float32)
        for r in requests:
            backend.get_input_tensor_by_name(r, "DATA").as_numpy()
        return [backend.InferenceResponse(output_tensors=[backend.Tensor("OUTPUT_0", made)]) for _ in requests]
"""
MODELS = {
    "penstock": "penstock, one instance, 2 threads",
    "penstock2": "penstock, two instances, 1 thread",
    "pillow1": "Pillow and NumPy, one instance",
    "pillow2": "Pillow and NumPy, two instances",
    "empty1": "zeros of that size, one instance",
}
WAYS = {"body": "in requests and answers", "shared": "in shared memory"}


def ideal_ratio(processors: int, load: float = 0.5, n: int = 200_000) -> float:
    """p99 over the median of requests that come at random times and take all the same time, each on one processor, in
    the order of arrival."""
    came = np.cumsum(np.random.default_rng(0).exponential(1 / (load * processors), n)).tolist()
    free = [0.0] * processors  # when each will be done
    latencies = []
    for at in came:
        done = max(at, heapq.heappop(free)) + 1
        heapq.heappush(free, done)
        latencies.append(done - at)
    median, late = np.percentile(latencies, [50, 99])
    return late / median


class Run(NamedTuple):
    rate: float
    latencies: list[float]
    cpu: dict[str, float]  # seconds of processor time, by part


@pipeline_def(batch_size=BATCH, device_id=None)
def preprocess() -> Any:
    data = fn.external_source(name="DATA", dtype=types.UINT8, ndim=1)
    images = fn.resize(fn.decoders.image(data, output_type=types.RGB), resize_x=SIDE, resize_y=SIDE, antialias=True)
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[124, 116, 104], std=[58, 57, 57]
    )


def write_models(folder: Path) -> None:
    """Writes the models, with one and two instances (processes)."""
    for name, threads, n in (("penstock", 2, 1), ("penstock2", 1, 2)):
        path = repository.export(preprocess(num_threads=threads), folder, name)
        config = (path / "config.pbtxt").read_text()
        write_config(path, config, n)
    for other, program, n in (("pillow1", PILLOW, 1), ("pillow2", PILLOW, 2), ("empty1", EMPTY, 1)):
        (folder / other / "1").mkdir(parents=True)
        (folder / other / "1" / "model.py").write_text(program)
        write_config(folder / other, config.replace(f'name: "{name}"', f'name: "{other}"'), n)


def write_config(model: Path, config: str, instances: int) -> None:
    (model / "config.pbtxt").write_text(f"{config}instance_group {{ kind: KIND_CPU, count: {instances} }}\n")


def processor_s() -> dict[str, float]:
    """Processor time so far of the models, of the server, and of the clients (this process)."""
    found = {"models": 0.0, "server": 0.0}
    for folder in measure._workers():
        name, _, fields = measure._text(folder / "stat").rpartition(")")
        part = "models" if "triton_python" in name else "server" if "tritonserver" in name else ""
        if part:
            found[part] += sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    times = os.times()
    return {**found, "clients": times.user + times.system}


def load(
    port: int, requests: list[list[bytes]], seconds: float, rate: float | None = None, at_random: bool = True
) -> Run:
    with triton_load.connected(port, requests) as connections:
        before = processor_s()
        found, latencies = triton_load.run(connections, seconds, rate, at_random)
        return Run(found, latencies, {k: v - before[k] for k, v in processor_s().items()})


def measured(o: Any, place: Path, photos: list[bytes]) -> dict[tuple[str, str], tuple[list[Run], list[Run]]]:
    """By model and way: runs at full load, and two at half of their median rate, with regular and with random times."""
    runs: dict[tuple[str, str], list[Run]] = {}
    names = [m for m in MODELS if o.only in m]
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder, "models"))
        backends = triton_server.backends(place, Path(folder, "backends"))
        with triton_server.serving(place, Path(folder, "models"), backends) as port:
            memory = triton_load.SharedMemory(port, photos, CLIENTS, ANSWER_BYTES)
            try:
                ways = {(m, "body"): [triton_load.in_the_body(m, photos)] * CLIENTS for m in names}
                ways |= {(m, "shared"): [memory.requests(m, c) for c in range(CLIENTS)] for m in names}
                for requests in ways.values():
                    load(port, requests, 0.5)
                for _ in range(o.rounds):
                    for key, requests in ways.items():
                        runs.setdefault(key, []).append(load(port, requests, o.seconds))
                return {
                    k: (r, [load(port, ways[k], 2 * o.seconds, median(r) / 2, x) for x in (False, True)])
                    for k, r in runs.items()
                }
            finally:
                memory.close()


def undisturbed() -> str:
    """Lets no other process of the machine interrupt this one and the server, if possible. Returns what to say of
    it."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return ""
    return "All of these processes are of the class SCHED_RR, so that others of the machine do not interrupt them."


def median(runs: list[Run]) -> float:
    return statistics.median(r.rate for r in runs)


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    place = triton_server.folder()
    files = sorted(Path(o.data, "photos500").rglob("*.jpg"))[:200]
    if place is None or not files:
        raise SystemExit("needs $PENSTOCK_TRITON and --data")
    os.environ.update(MALLOC)
    how = undisturbed()
    found = measured(o, place, [f.read_bytes() for f in files])
    lines = [
        "# Serving by Triton",
        "",
        measure.machine(),
        f"Triton's Python backend, {CLIENTS} connections of one client on the same machine, a photograph of 500 pixels",
        f"a request, dynamic batches up to {BATCH}; decode, resize to {SIDE} x {SIDE}, normalise, FP32 in the answer.",
        "Pictures and pixels are in requests and answers of HTTP, or in shared memory of the system. Requests/s:",
        f"medians of {o.rounds} interleaved runs of {o.seconds:g} s (least to most). Processor time of a request, in",
        "ms: of the model's process, of the server, of the client, which share the same cores. Latency: at half the",
        "model's own requests/s, which come at regular times, or at random ones (a Poisson process, where some have to",
        "wait for others however quick the server is: the last row but one is what a queue without any other delay "
        "has,",
        "simulated with requests that take the same time, one on each processor). Zeros: a model that does nothing but",
        "answer.",
        f"The server and all models run with `{' '.join(f'{k}={v}' for k, v in MALLOC.items())}`.",
        *([how] if how else []),
        "Written by `bench/triton_backend.py`.",
    ]
    for way, where in WAYS.items():
        lines += [
            "",
            f"## Pictures and pixels {where}",
            "",
            "| | requests/s | of Pillow's best | model / server / client, ms | regular: median, p99, ms | "
            "p99 / median | random: median, p99, ms | p99 / median |",
            "|---|---|---|---|---|---|---|---|",
        ]
        best = max((median(found[m, way][0]) for m in ("pillow1", "pillow2") if (m, way) in found), default=np.nan)
        for m, title in MODELS.items():
            if (m, way) not in found:
                continue
            runs, half = found[m, way]
            rates = [r.rate for r in runs]
            middle = min(runs, key=lambda r: abs(r.rate - median(runs)))
            cpu = " / ".join(
                f"{1000 * middle.cpu[k] / len(middle.latencies):.2f}" for k in ("models", "server", "clients")
            )
            times = [np.percentile(h.latencies, [50, 99]) * 1000 for h in half]
            latency = " | ".join(f"{a:.1f}, {b:.1f} | {b / a:.1f}" for a, b in times)
            spread = f"{median(runs):.0f} ({min(rates):.0f} to {max(rates):.0f})"
            lines.append(f"| {title} | {spread} | {median(runs) / best:.2f} | {cpu} | {latency} |")
        ideal = ideal_ratio(os.cpu_count() or 1)
        lines.append(f"| requests of one length, one per processor | | | | | 1 | | {ideal:.1f} |")
        lines.append(f"| asked for | | {LEAST:g} | | | {MOST:g} | | {MOST:g} |")
    measure.write(o.out, "triton.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
