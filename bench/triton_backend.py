# SPDX-License-Identifier: Apache-2.0
"""Requests/s in the Triton Inference Server: decode, resize, normalise, against Pillow and NumPy in the same backend.

Needs the wheel nvidia-pytriton in a virtual environment of its own, with NumPy < 2 and Pillow: $PENSTOCK_TRITON.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import measure
import numpy as np

sys.path[:0] = [str(measure.ROOT / "src"), str(measure.ROOT / "tests" / "plugin")]
import triton_server  # noqa: E402

from penstock import fn, pipeline_def, types  # noqa: E402
from penstock.plugin.triton import repository  # noqa: E402

CLIENTS = 16
BATCH = 16
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


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
def preprocess() -> Any:
    data = fn.external_source(name="DATA", dtype=types.UINT8, ndim=1)
    images = fn.resize(fn.decoders.image(data, output_type=types.RGB), resize_x=224, resize_y=224, antialias=True)
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[124, 116, 104], std=[58, 57, 57]
    )


def repositories(folder: Path) -> list[str]:
    """Writes the models; Pillow's also with an instance (a process) per core of two."""
    repository.export(preprocess(), folder, "penstock")
    config = (folder / "penstock" / "config.pbtxt").read_text()
    for n in (1, 2):
        name = f"pillow{n}"
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "1" / "model.py").write_text(PILLOW)
        text = config.replace('name: "penstock"', f'name: "{name}"')
        (folder / name / "config.pbtxt").write_text(text + f"instance_group {{ kind: KIND_CPU, count: {n} }}\n")
    return ["penstock", "pillow1", "pillow2"]


def load(port: int, model: str, photos: list[np.ndarray], seconds: float, rate: float | None) -> tuple[float, list]:
    """Requests/s and latencies in s. Without a rate each client sends its next request when it has its answer; with
    one, requests are due at random times (exponential gaps), and their latency counts from then."""
    latencies: list[float] = []
    rng = np.random.default_rng(0)
    begin = time.perf_counter() + 0.1
    due = None if rate is None else list(begin + np.cumsum(rng.exponential(1 / rate, int(rate * seconds))))[::-1]

    def client(c: int) -> None:
        connection = triton_server.Client(port)
        for k in range(c, 10**9, CLIENTS):
            start = time.perf_counter()
            if due is None:
                if start > begin + seconds:
                    return
            else:
                try:
                    start = due.pop()
                except IndexError:
                    return
                time.sleep(max(0.0, start - time.perf_counter()))
            connection.infer(model, "DATA", photos[k % len(photos)])
            latencies.append(time.perf_counter() - start)

    threads = [threading.Thread(target=client, args=(c,)) for c in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return len(latencies) / (time.perf_counter() - begin), latencies


def main() -> None:
    o = measure.arguments(__doc__).parse_args()
    place = triton_server.folder()
    files = sorted(Path(o.data, "photos500").rglob("*.jpg"))[:200]
    if place is None or not files:
        raise SystemExit("needs $PENSTOCK_TRITON and --data")
    photos = [np.frombuffer(f.read_bytes(), np.uint8)[None] for f in files]
    rates: dict[str, list[float]] = {}
    waits = {}
    with tempfile.TemporaryDirectory() as folder:
        models = repositories(Path(folder, "models"))
        backends = triton_server.backends(place, Path(folder, "backends"))
        with triton_server.serving(place, Path(folder, "models"), backends) as port:
            for m in models:
                load(port, m, photos, 1.0, None)
            for _ in range(o.rounds):
                for m in models:
                    rates.setdefault(m, []).append(load(port, m, photos, o.seconds, None)[0])
            medians = {m: statistics.median(r) for m, r in rates.items()}
            for m in models:
                waits[m] = load(port, m, photos, 3 * o.seconds, medians[m] / 2)[1]
    lines = [
        "# Serving by Triton",
        "",
        measure.machine(),
        f"Triton's Python backend, {CLIENTS} clients on the same machine, one photograph of 500 pixels a request,",
        f"dynamic batches up to {BATCH}; decode, resize to 224 x 224, normalise, FP32 in the answer.",
        f"Requests/s: medians of {o.rounds} interleaved",
        f"runs of {o.seconds:g} s. Latency: at half the model's own requests/s, at random times. Written by",
        "`bench/triton_backend.py`.",
        "",
        "| | requests/s | times the best of Pillow | median latency, ms | p99, ms | p99 over median |",
        "|---|---|---|---|---|---|",
    ]
    best = max(medians["pillow1"], medians["pillow2"])
    titles = ("penstock, one instance, 2 threads", "Pillow and NumPy, one instance", "Pillow and NumPy, two instances")
    for m, title in zip(models, titles):
        a, b = np.percentile(waits[m], [50, 99]) * 1000
        lines.append(f"| {title} | {medians[m]:.0f} | {medians[m] / best:.2f} | {a:.1f} | {b:.1f} | {b / a:.1f} |")
    lines.append("| asked for | | 3 | | | 2 |")
    measure.write(o.out, "triton.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
