# SPDX-License-Identifier: Apache-2.0
"""Exported models in the real Triton server, with simultaneous clients."""

import io
import json
import threading
from pathlib import Path

import numpy as np
import pytest
import triton_server
from PIL import Image

from penstock import fn, pipeline_def, types
from penstock.plugin.triton import repository

PLACE = triton_server.folder()
BY_DALI = Path(__file__).parents[1] / "pipeline" / "dali_pipelines" / "pictures.dali"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PLACE is None, reason="needs nvidia-pytriton, here or in the environment $PENSTOCK_TRITON"),
]
MEAN, STD = np.float32([123, 116, 103]), np.float32([58, 57, 57.5])
DALI_MODEL = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=8, num_threads=1, device_id=None)
def pipe():
    x = fn.external_source(device="cpu", name="NUMBERS", dtype=types.INT32, ndim=1)
    return x * 3
"""


@pipeline_def(batch_size=16, num_threads=2, device_id=None)
def normalised():
    data = fn.external_source(name="DATA", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(data, output_type=types.RGB)
    images = fn.resize(images, resize_x=64, resize_y=48, interp_type=types.INTERP_LINEAR, antialias=True)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=[*MEAN], std=[*STD])


@pipeline_def(batch_size=8, num_threads=1, device_id=None)
def decoded():
    return fn.decoders.image(fn.external_source(name="DATA"), output_type=types.RGB)


def picture(i: int) -> bytes:
    """A smooth image with a size that depends on `i`. Decoders and filters differ little on it."""
    h, w = 60 + 7 * (i % 9), 80 + 11 * (i % 7)
    y, x = np.mgrid[:h, :w]
    planes = [128 + 100 * np.sin((x * a + y * b) / 40 + i) for a, b in ((1, 0), (0, 1), (1, 1))]
    out = io.BytesIO()
    Image.fromarray(np.stack(planes, -1).astype(np.uint8)).save(out, "JPEG", quality=95, subsampling=0)
    return out.getvalue()


def by_pillow(data: bytes) -> np.ndarray:
    image = Image.open(io.BytesIO(data)).convert("RGB").resize((64, 48), Image.Resampling.BILINEAR)
    return ((np.asarray(image, np.float32) - MEAN) / STD).transpose(2, 0, 1)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triton")
    models = folder / "models"
    repository.export(normalised(), models, "normalised")
    repository.export(decoded(), models, "decoded", backend="penstock")
    (models / "short" / "1").mkdir(parents=True)
    repository.export(normalised(), folder / "other", "short")
    for name in ("model.py", "model.penstock"):
        (models / "short" / "1" / name).write_bytes((folder / "other" / "short" / "1" / name).read_bytes())
    (models / "short" / "config.pbtxt").write_text('backend: "python"\n')
    (models / "tripled" / "1").mkdir(parents=True)
    (models / "tripled" / "1" / "dali.py").write_text(DALI_MODEL)
    (models / "tripled" / "config.pbtxt").write_text('name: "tripled"\nbackend: "dali"\nmax_batch_size: 8\n')
    (models / "serialised" / "1").mkdir(parents=True)
    (models / "serialised" / "1" / "model.dali").write_bytes(BY_DALI.read_bytes())
    (models / "serialised" / "config.pbtxt").write_text('name: "serialised"\nbackend: "dali"\nmax_batch_size: 4\n')
    backends = triton_server.backends(PLACE, folder / "backends")
    repository.install_backends(backends)
    with triton_server.serving(PLACE, models, backends) as port:
        yield port


def row(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)[None]


def test_an_answer_is_what_pillow_computes(port):
    got = triton_server.Client(port).infer("normalised", "DATA", row(picture(3)))
    assert got.shape == (1, 3, 48, 64)
    assert np.abs(got[0] - by_pillow(picture(3))).max() < 3 / 57


def test_configuration_is_completed(port):
    config = json.loads(triton_server.get(port, "/v2/models/short/config")[1])
    assert config["max_batch_size"] == 16 and "dynamic_batching" in config
    (given,), (made,) = config["input"], config["output"]
    assert (given["name"], given["data_type"], given["dims"]) == ("DATA", "TYPE_UINT8", [-1])
    assert (made["data_type"], made["dims"]) == ("TYPE_FP32", [3, 48, 64])


def test_outputs_of_several_shapes(port):
    """With the backend "penstock"."""
    for i in range(4):
        got = triton_server.Client(port).infer("decoded", "DATA", row(picture(i)))
        expected = np.asarray(Image.open(io.BytesIO(picture(i))))
        assert got.shape[1:] == expected.shape
        assert np.abs(got[0].astype(int) - expected).max() <= 2


def test_a_repository_of_the_dali_backend(port):
    numbers = np.arange(10, dtype=np.int32).reshape(2, 5)
    got = triton_server.Client(port).infer("tripled", "NUMBERS", numbers, "INT32")
    assert np.array_equal(got, numbers * 3)


def test_a_pipeline_that_dali_serialised(port):
    out = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 255, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, "PNG")
    got = triton_server.Client(port).infer("serialised", "DATA", row(out.getvalue()))
    assert np.array_equal(got[0], pixels)


def test_load_with_damaged_pictures(port):
    """Eight clients send images of many sizes, a fifth of them damaged. Requests with damaged images get an error, and
    the others in the same batch get their own pixels."""
    pictures = [picture(i) for i in range(40)]
    pipe = normalised(on_error="raise")
    local = [pipe.run(DATA=[np.frombuffer(p, np.uint8)])[0].as_array()[0] for p in pictures]
    for p, pixels in zip(pictures, local):
        assert np.abs(pixels - by_pillow(p)).max() < 3 / 57
    wrong: list[str] = []
    refused = [0] * 8

    def client(c: int) -> None:
        connection, rng = triton_server.Client(port), np.random.default_rng(c)
        for k in range(60):
            i = int(rng.integers(len(pictures)))
            damaged = rng.random() < 0.2
            data = pictures[i][:2] + b"\0" * 200 if damaged else pictures[i]
            try:
                got = connection.infer("normalised", "DATA", row(data))[0]
            except triton_server.Refused as e:
                refused[c] += 1
                if not damaged or "sample 0 of the request" not in str(e):
                    wrong.append(f"{c}.{k}: {e}")
            else:
                if damaged or not np.array_equal(got, local[i]):
                    wrong.append(f"{c}.{k}: pixels")

    threads = [threading.Thread(target=client, args=(c,)) for c in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(100)
    assert not any(t.is_alive() for t in threads)
    assert not wrong, wrong[:3]
    assert all(refused)
    stats = json.loads(triton_server.get(port, "/v2/models/normalised/stats")[1])["model_stats"][0]
    assert stats["execution_count"] < stats["inference_count"], "no two requests were in one batch"
