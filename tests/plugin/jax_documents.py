# SPDX-License-Identifier: Apache-2.0
"""The content of DALI's two documents on JAX, in their order and with its module names: first steps, and T5X.

Run by test_jax_documents.py as `python -m penstock.as_dali jax_documents.py FOLDER [gpu]` with two CPU devices; with
`gpu`, on a machine that has two, on them. Each check is a result printed in a document."""

import io
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec

import jax
import numpy as np
import nvidia.dali.fn as fn
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from nvidia.dali.pipeline import Pipeline, pipeline_def
from nvidia.dali.plugin.jax import DALIGenericIterator, data_iterator
from nvidia.dali.plugin.jax.clu import peekable_data_iterator

FOLDER = sys.argv[1]
GPU = sys.argv[2:] == ["gpu"]
DECODER = "mixed" if GPU else "cpu"
CPU = jax.devices("cpu")[0]
FIRST, SECOND = jax.devices()
NAMES = ["images", "labels"]


def resized(size, device="cpu", **reader):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="image_reader", **reader)
    images = fn.decoders.image(jpegs, device=device)
    return fn.resize(images, resize_x=size, resize_y=size), labels


def spread(size, num_shards=1, shard_id=0):
    """A pipeline on the device of the shard, including the labels."""
    images, labels = resized(size, DECODER, num_shards=num_shards, shard_id=shard_id)
    return images, labels.gpu() if GPU else labels


def device_of(array):
    """`Array.device` was a method once."""
    (device,) = array.devices()
    return device


# First steps: the decorator.
@data_iterator(output_map=NAMES, reader_name="image_reader")
def iterator_fn():
    return resized(256, DECODER)


batch = next(iterator_fn(batch_size=8))
assert batch["images"].shape == (8, 256, 256, 3) and batch["labels"].shape == (8, 1)


# The function form, batch by batch.
def simple_pipeline():
    return resized(256)


iterator_fn = data_iterator(simple_pipeline, output_map=NAMES, reader_name="image_reader")
iterator = iterator_fn(batch_size=1)
output = next(iterator)
assert str(output.keys()) == "dict_keys(['images', 'labels'])"
for name, shape in (("images", (1, 256, 256, 3)), ("labels", (1, 1))):
    assert type(output[name]).__name__ == "ArrayImpl" and isinstance(output[name], jax.Array)
    assert output[name].shape == shape
assert str(output["labels"][0]) == "[0]" and str(next(iterator)["labels"][0]) == "[0]"
iterator = iterator_fn(batch_size=1)
assert f"Iterator size: {len(iterator)}" == "Iterator size: 21"
assert [i for i, _ in enumerate(iterator)] == list(range(21))
batch = next(iterator_fn(batch_size=8))
assert type(batch["images"]).__name__ == "ArrayImpl" and batch["images"].shape == (8, 256, 256, 3)
assert device_of(batch["images"]) == device_of(batch["labels"]) == CPU
assert np.asarray(batch["images"]).std() > 20  # pictures, not noise or nothing


# GPU work from the decoder or a later operator on, and on another GPU.
@data_iterator(output_map=NAMES, reader_name="image_reader")
def on_gpu(decoder):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="image_reader")
    images = fn.decoders.image(jpegs, device=decoder)
    images = images.gpu() if decoder == "cpu" else images
    return fn.resize(images, resize_x=256, resize_y=256), labels


if GPU:
    on_cpu = np.asarray(batch["images"]).astype("i4")
    for decoder in ("cpu", "mixed"):
        batch = next(on_gpu(decoder, batch_size=8))
        assert device_of(batch["images"]) == FIRST and device_of(batch["labels"]) == CPU
        assert abs(np.asarray(batch["images"]) - on_cpu).mean() < 1
        batch = next(on_gpu(decoder, batch_size=1, device_id=1))
        assert device_of(batch["images"]) == SECOND and device_of(batch["labels"]) == CPU


# Shuffling with a seed, and a random rotation.
@data_iterator(output_map=NAMES, reader_name="image_reader")
def shuffled(rotate=False):
    jpegs, labels = fn.readers.file(file_root=FOLDER, name="image_reader", random_shuffle=True)
    images = fn.decoders.image(jpegs, device=DECODER)
    if rotate:
        images = fn.rotate(images, angle=fn.random.uniform(range=(-10.0, 10.0)), fill_value=0)
    return fn.resize(images, resize_x=256, resize_y=256), labels


for rotate in (False, True):
    first, again = (next(shuffled(rotate, batch_size=8, seed=0))["images"] for _ in range(2))
    assert first.shape == (8, 256, 256, 3) and (first == again).all()


# A batch over several devices.
mesh = Mesh(jax.devices(), axis_names=("batch",))
sharding = NamedSharding(mesh, PartitionSpec("batch"))
assert "NamedSharding(mesh=Mesh('batch': 2" in str(sharding) and "'batch'" in str(sharding.spec)


def sharded_pipeline(num_shards=1, shard_id=0):
    return spread(256, num_shards, shard_id)


single = data_iterator(sharded_pipeline, output_map=NAMES, reader_name="image_reader")(batch_size=8)
assert next(single)["images"].sharding.is_fully_addressable and len(single) == 3
sharded_fn = data_iterator(sharded_pipeline, output_map=NAMES, reader_name="image_reader", sharding=sharding)
images = next(sharded_fn(batch_size=8))["images"]
assert images.shape == (8, 256, 256, 3) and images.sharding == sharding
assert images.devices() == set(jax.devices())
if find_spec("rich"):  # which JAX draws with
    printed = io.StringIO()
    with redirect_stdout(printed):
        jax.debug.visualize_array_sharding(images.ravel())
    kind = "GPU" if GPU else "CPU"
    assert f"{kind} 0" in printed.getvalue() and f"{kind} 1" in printed.getvalue()
shards = images.addressable_shards
assert [(s.device, s.data.shape) for s in shards] == [(d, (4, 256, 256, 3)) for d in jax.devices()]
for num_threads in (1, 8):
    iterator = sharded_fn(batch_size=64, num_threads=num_threads)
    for _ in range(2):
        assert [b["images"].shape for b in iterator] == [(64, 256, 256, 3)]


# The underlying iterator of a pipeline.
assert str(type(iterator)).endswith("plugin.jax.iterator.DALIGenericIterator'>")
pipeline = pipeline_def(simple_pipeline)(batch_size=8, num_threads=1, device_id=0)
assert type(pipeline) is Pipeline and str(type(pipeline)).endswith(".pipeline.Pipeline'>")
iterator = DALIGenericIterator(pipeline, output_map=NAMES, reader_name="image_reader")
assert type(iterator) is DALIGenericIterator and next(iterator)["images"].shape == (8, 256, 256, 3)


# T5X: iterators with peek.
def small_pipeline(num_shards=1, shard_id=0):
    return spread(128, num_shards, shard_id)


for settings in ({}, {"sharding": sharding}):
    iterator = peekable_data_iterator(small_pipeline, output_map=NAMES, reader_name="image_reader", **settings)(
        batch_size=8
    )
    peeked, promised = iterator.peek(), iterator.peek_async().result()
    batch = next(iterator)
    assert batch["images"].shape == (8, 128, 128, 3)
    for other in (peeked, promised):
        assert all((other[n] == batch[n]).all() for n in NAMES)
    assert (next(iterator)["images"] != batch["images"]).any()
    assert batch["images"].devices() == batch["labels"].devices() == (set(jax.devices()) if settings else {FIRST})
print("all as documented")
