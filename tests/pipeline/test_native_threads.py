# SPDX-License-Identifier: Apache-2.0
"""How many native threads a pipeline has, of those that were requested."""

from pathlib import Path

import pytest

from penstock import fn, pipeline_def
from penstock.exec.plan import Plan
from penstock.pipeline import runner

FILES = sorted(map(str, (Path(__file__).parents[2] / "examples" / "data").rglob("*.jpg")))[:2]


def read():
    return fn.readers.file(files=FILES)


def only_for_gpu(**decoder):
    images, labels = read()
    images = fn.decoders.image_random_crop(images, device="mixed", **decoder)
    images = fn.resize(images, size=(8, 8))
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip()), labels.gpu()


def engine_allowed():
    return only_for_gpu(hw_decoder_load=0.5)


def video():
    return fn.decoders.video(read()[0], device="mixed")


def also_cpu():
    small = fn.resize(fn.decoders.image(read()[0]), size=(8, 8))
    return *only_for_gpu(), small.gpu()


def no_gpu():
    return fn.decoders.image(read()[0])


@pytest.mark.parametrize(
    "define, cpus, requested, threads",
    [
        (only_for_gpu, 16, 16, 8),
        (only_for_gpu, 16, 6, 6),
        (only_for_gpu, 6, 16, 2),
        (only_for_gpu, 4, 4, 1),
        (only_for_gpu, 1, 4, 1),
        (engine_allowed, 16, 16, 12),
        (video, 16, 16, 12),
        (also_cpu, 16, 16, 12),
        (no_gpu, 16, 16, 16),
        (no_gpu, 4, 16, 16),
    ],
)
def test_threads_that_feed_a_gpu_leave_it_cores(monkeypatch, define, cpus, requested, threads):
    monkeypatch.setattr(runner, "available_cpus", lambda: cpus)
    pipe = pipeline_def(define)(batch_size=2, num_threads=requested, device_id=0)
    with pipe:
        plan = Plan(pipe.definition.nodes, pipe._graph.output_nodes(), [], 0)
    assert runner.native_threads(pipe._settings, plan) == threads


def test_decoding_by_the_cpu_has_all_requested_threads(monkeypatch):
    monkeypatch.setattr(runner, "available_cpus", lambda: 16)
    pipe = pipeline_def(only_for_gpu)(batch_size=2, num_threads=16, device_id=0, decode_on="cpu")
    with pipe:
        plan = Plan(pipe.definition.nodes, pipe._graph.output_nodes(), [], 0)
    assert runner.native_threads(pipe._settings, plan) == 16
