# SPDX-License-Identifier: Apache-2.0
"""Arrays on GPUs are the batches of the pipelines, not copies. Run by hand on a machine with two GPUs: `pytest
tests/plugin/on_two_gpus.py`."""

from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from penstock import fn, pipeline_def
from penstock.pipeline import Pipeline
from penstock.plugin.jax import DALIGenericIterator, data_iterator

FOLDER = str(Path(__file__).parents[2] / "examples" / "data")

if jax.default_backend() != "gpu" or len(jax.devices()) < 2:
    pytest.skip("needs two GPUs", allow_module_level=True)
DEVICES = jax.devices()[:2]


@pytest.fixture
def seen(monkeypatch):
    """What pipelines gave out."""
    batches = []
    share = Pipeline.share_outputs
    monkeypatch.setattr(Pipeline, "share_outputs", lambda *a: batches.append(share(*a)) or batches[-1])
    return batches


def pictures(num_shards=1, shard_id=0, size=64):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="reader", num_shards=num_shards, shard_id=shard_id)
    return fn.resize(fn.decoders.image(jpegs, device="mixed"), size=(size, size)), labels


NAMES = {"output_map": ["image", "label"], "reader_name": "reader"}


def test_one_gpu(seen):
    it = data_iterator(pictures, prepare_first_batch=False, **NAMES)(batch_size=4, device_id=1)
    kept = [next(it) for _ in range(4)]
    for batch, outputs in zip(kept, seen):
        assert batch["image"].devices() == {DEVICES[1]} and batch["label"].devices() == {jax.devices("cpu")[0]}
        assert batch["image"].unsafe_buffer_pointer() == outputs[0].data_ptr()
    values = [np.asarray(outputs[0].as_cpu().as_array()) for outputs in seen]
    seen.clear()
    it._pipes[0].close()
    assert all((np.asarray(b["image"]) == v).all() for b, v in zip(kept, values))


def test_shards(seen):
    sharding = NamedSharding(Mesh(np.array(DEVICES), ("batch",)), P("batch"))
    it = data_iterator(pictures, sharding=sharding, prepare_first_batch=False, **NAMES)(batch_size=8)
    batch = next(it)
    parts = batch["image"].addressable_shards
    assert [(s.device, s.data.shape) for s in parts] == [(d, (4, 64, 64, 3)) for d in DEVICES]
    assert [s.data.unsafe_buffer_pointer() for s in parts] == [outputs[0].data_ptr() for outputs in seen]
    assert batch["label"].devices() == set(DEVICES)
    total = jax.jit(lambda x: x.astype("f4").mean())(batch["image"])
    assert abs(float(total) - np.asarray(batch["image"]).astype("f8").mean()) < 0.1


def test_axis_of_devices():
    batch = next(data_iterator(pictures, devices=DEVICES, **NAMES)(batch_size=8))
    assert batch["image"].shape == (2, 4, 64, 64, 3) and batch["image"].devices() == set(DEVICES)


def test_partial_and_ragged():
    it = data_iterator(pictures, last_batch_policy="PARTIAL", **NAMES)(batch_size=16)
    assert [b["image"].shape[0] for b in it] == [16, 5]

    @pipeline_def(batch_size=4, device_id=0)
    def ragged():
        jpegs, _ = fn.readers.file(file_root=FOLDER)
        return fn.decoders.image(jpegs, device="mixed")

    with pytest.raises(ValueError, match="output 'image'.*differ in shape"):
        DALIGenericIterator(ragged(), ["image"])


def test_batches_keep_their_content():
    """A batch that JAX still computes with is not written to by the pipeline."""
    work = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, s: s + x.astype("f4").mean(), 0.0) / 50)
    it = data_iterator(pictures, **NAMES)(batch_size=7, device_id=0)
    on_gpu = [float(m) for m in [work(b["image"]) for _ in range(3) for b in it]]
    it = data_iterator(pictures, **NAMES)(batch_size=7, device_id=1)
    again = [float(np.asarray(b["image"]).astype("f8").mean()) for _ in range(3) for b in it]
    np.testing.assert_allclose(on_gpu, again, rtol=1e-3)
