# SPDX-License-Identifier: Apache-2.0
"""Introductory programs of DALI, on the example photographs and the CPU: its front page, first steps with JAX, and the
class style of its first versions."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from penstock import fn, ops, pipeline_def, types
from penstock.pipeline import Pipeline

IMAGES = Path(__file__).parents[2] / "examples" / "data"
SIZE = len(list(IMAGES.rglob("*.jpg")))
IMAGE_DIR = str(IMAGES)


def test_front_page():
    pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    @pipeline_def(num_threads=4, device_id=0)
    def get_pipeline():
        images, labels = fn.readers.file(file_root=IMAGE_DIR, random_shuffle=True, name="Reader")
        images = fn.decoders.image_random_crop(images, device="cpu", output_type=types.RGB)
        images = fn.resize(images, resize_x=256, resize_y=256)
        images = fn.crop_mirror_normalize(
            images,
            crop_h=224,
            crop_w=224,
            mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
            std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
            mirror=fn.random.coin_flip(),
        )
        return images, labels

    train_data = DALIGenericIterator([get_pipeline(batch_size=16)], ["data", "label"], reader_name="Reader")
    n = 0
    for data in train_data:
        x, y = data[0]["data"], data[0]["label"]
        assert x.shape == (16, 3, 224, 224) and str(x.dtype) == "torch.float32" and y.shape == (16, 1)
        assert 0.2 < float(x.std()) < 3 and -3 < float(x.min()) < float(x.max()) < 3
        n += 1
    assert n == len(train_data) == -(-SIZE // 16)


@pytest.fixture(scope="module")
def jax_plugin():
    pytest.importorskip("jax")
    import penstock.plugin.jax

    return penstock.plugin.jax


def simple_pipeline():
    jpegs, labels = fn.readers.file(file_root=IMAGE_DIR, name="image_reader")
    images = fn.decoders.image(jpegs)
    images = fn.resize(images, resize_x=256, resize_y=256)
    return images, labels


def test_jax_quick_start(jax_plugin):
    import jax

    iterator_fn = jax_plugin.data_iterator(simple_pipeline, output_map=["images", "labels"], reader_name="image_reader")
    iterator = iterator_fn(batch_size=1)
    output = next(iterator)
    assert list(output.keys()) == ["images", "labels"]
    assert isinstance(output["images"], jax.Array) and output["images"].shape == (1, 256, 256, 3)
    assert isinstance(output["labels"], jax.Array) and output["labels"].shape == (1, 1)
    assert output["images"].dtype == np.uint8 and output["labels"].dtype == np.int32
    assert str(output["images"].device).lower().startswith("tfrt_cpu") or output["images"].device.platform == "cpu"
    assert output["labels"][0] == next(iterator)["labels"][0] == 0

    iterator = iterator_fn(batch_size=1)
    assert len(iterator) == SIZE == 21
    assert [i for i, batch in enumerate(iterator)] == list(range(21))

    batch = next(iterator_fn(batch_size=8))
    assert batch["images"].shape == (8, 256, 256, 3) and batch["labels"].shape == (8, 1)
    one_thread, eight = (iterator_fn(batch_size=8, num_threads=n) for n in (1, 8))
    for a, b in itertools.islice(zip(one_thread, eight), 2):
        assert (a["images"] == b["images"]).all()


def test_jax_shuffling_and_augmentation(jax_plugin):
    @jax_plugin.data_iterator(output_map=["images", "labels"], reader_name="image_reader")
    def iterator_fn():
        jpegs, labels = fn.readers.file(file_root=IMAGE_DIR, name="image_reader", random_shuffle=True)
        images = fn.decoders.image(jpegs, device="cpu")
        angle = fn.random.uniform(range=(-10.0, 10.0))
        images = fn.rotate(images, angle=angle, fill_value=0)
        images = fn.resize(images, resize_x=256, resize_y=256)
        return images, labels

    first, again, other = (next(iterator_fn(batch_size=8, seed=s)) for s in (0, 0, 1))
    assert first["images"].shape == (8, 256, 256, 3)
    assert (first["images"] == again["images"]).all() and (first["images"] != other["images"]).any()
    assert (first["images"][:, 0, 0] == 0).any()  # a corner turned in


def test_jax_sharding(jax_plugin):
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(jax.devices(), axis_names=("batch",))
    sharding = NamedSharding(mesh, PartitionSpec("batch"))

    @jax_plugin.data_iterator(output_map=["images", "labels"], reader_name="image_reader", sharding=sharding)
    def iterator_fn(num_shards=1, shard_id=0):
        jpegs, labels = fn.readers.file(
            file_root=IMAGE_DIR, name="image_reader", num_shards=num_shards, shard_id=shard_id
        )
        images = fn.decoders.image(jpegs, device="cpu")
        return fn.resize(images, resize_x=256, resize_y=256), labels

    images = next(iterator_fn(batch_size=8))["images"]
    assert images.shape == (8, 256, 256, 3) and images.sharding == sharding
    assert images.devices() == set(jax.devices())


def test_jax_iterator_of_a_pipeline(jax_plugin):
    pipeline = pipeline_def(simple_pipeline)(batch_size=8, num_threads=1, device_id=0)
    iterator = jax_plugin.DALIGenericIterator(pipeline, output_map=["images", "labels"], reader_name="image_reader")
    assert type(iterator).__module__ == "penstock.plugin.jax.iterator" and type(pipeline) is Pipeline
    assert len(list(iterator)) == 3


class HybridTrainPipeline(Pipeline):
    """The class style: operators are created in the constructor, with names of DALI's first versions."""

    def __init__(self, batch_size, file_root, num_threads, device_id, num_shards, shard_id):
        super().__init__(batch_size, num_threads, device_id)
        self.input = ops.FileReader(file_root=file_root, num_shards=num_shards, shard_id=shard_id)
        self.decode = ops.ImageDecoder(device="cpu", output_type=types.RGB)
        self.res = ops.RandomResizedCrop(device="cpu", size=224)
        self.cmnp = ops.CropMirrorNormalize(
            device="cpu", dtype=types.FLOAT, output_layout=types.NCHW, mean=0.0, std=1.0
        )

    def define_graph(self):
        jpegs, labels = self.input(name="Reader")
        images = self.decode(jpegs)
        images = self.res(images)
        images = self.cmnp(images)
        return images, labels


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_class_style():
    pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIClassificationIterator

    pipes = [HybridTrainPipeline(4, IMAGE_DIR, 2, 0, 2, shard) for shard in range(2)]
    for p in pipes:
        p.build()
    size = pipes[0].epoch_size()["Reader"] // pipes[0].batch_size * pipes[0].batch_size
    loaders = [DALIClassificationIterator(pipelines=p, last_batch_policy="drop", size=size) for p in pipes]
    assert size == 20 and [loader.size for loader in loaders] == [20, 20]
    for loader in loaders:
        batches = [(b[0]["data"], b[0]["label"].view(-1).long()) for b in loader]
        assert len(batches) == 5
        assert all(x.shape == (4, 3, 224, 224) and y.shape == (4,) and 0 <= float(x.min()) for x, y in batches)
