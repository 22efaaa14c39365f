# SPDX-License-Identifier: Apache-2.0
"""How many native threads a pipeline with a GPU has."""

from pathlib import Path

import pytest

from penstock import fn, pipeline_def
from penstock.pipeline import runner

FOLDER = str(Path(__file__).parents[2] / "examples" / "data")


def pictures(device):
    jpegs, labels = fn.readers.file(file_root=FOLDER)
    images = fn.resize(fn.decoders.image(jpegs, device=device), size=(32, 32))
    return images.gpu(), labels.gpu()


@pytest.mark.parametrize("cpus, asked, got", [(4, 4, 4), (2, 3, 3), (16, 16, 16)])
def test_the_cpu_decodes_with_all_threads_asked_for(monkeypatch, cpus, asked, got):
    """A small number of cores does not reduce the threads that decode."""
    monkeypatch.setattr(runner, "available_cpus", lambda: cpus)
    pipe = pipeline_def(pictures, batch_size=8, num_threads=asked, device_id=0)("cpu")
    pipe.build()
    assert pipe._executor._production.producer.pool.n == got


def test_all_threads_where_the_cpu_does_the_work_of_mixed_decoders(monkeypatch):
    monkeypatch.setattr(runner, "available_cpus", lambda: 4)
    pipe = pipeline_def(pictures, batch_size=8, num_threads=4, device_id=0, decode_on="cpu")("mixed")
    pipe.build()
    assert pipe._executor._production.producer.pool.n == 4


@pytest.mark.parametrize("cpus, asked, got", [(4, 4, 1), (8, 8, 4), (16, 8, 8)])
def test_where_the_gpu_decodes_cores_are_left_to_what_feeds_it(monkeypatch, cpus, asked, got):
    monkeypatch.setattr(runner, "available_cpus", lambda: cpus)
    pipe = pipeline_def(pictures, batch_size=8, num_threads=asked, device_id=0)("mixed")
    pipe.build()
    assert pipe._executor._production.producer.pool.n == got
