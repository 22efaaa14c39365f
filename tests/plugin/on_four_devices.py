# SPDX-License-Identifier: Apache-2.0
"""Batches over four CPU devices. Run by test_jax_devices.py in a separate process, as JAX counts its devices only
once."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from penstock import fn
from penstock.pipeline import Pipeline
from penstock.plugin.jax import DALIGenericIterator, data_iterator
from penstock.plugin.jax.clu import peekable_data_iterator

DEVICES = jax.devices()
SHARDING = NamedSharding(Mesh(DEVICES, ("batch",)), P("batch"))


def source(num_shards=1, shard_id=0, width=16):
    # A copy, as the user's memory may not have the alignment that JAX requires.
    return fn.copy(fn.external_source(source=lambda i: np.full((2, width), 100 * i + 10 * num_shards + shard_id, "i4")))


def first(sharding, batch_size=8, **kwargs):
    make = data_iterator(source, output_map=["x"], size=64, sharding=sharding, **kwargs)
    return next(make(batch_size=batch_size))["x"]


def on_devices(x):
    return {s.device.id: int(s.data.ravel()[0]) for s in x.addressable_shards}


def test_along_one_axis():
    x = first(SHARDING)
    assert len(DEVICES) == 4 and x.shape == (8, 16) and x.sharding == SHARDING
    assert x[:, 0].tolist() == [40, 40, 41, 41, 42, 42, 43, 43]
    assert [s.data.shape for s in x.addressable_shards] == [(2, 16)] * 4


def test_no_copy(monkeypatch):
    """Neither a global array nor one with an axis of devices is a copy."""
    seen = []
    run = Pipeline.run
    monkeypatch.setattr(Pipeline, "run", lambda *a: seen.append(run(*a)) or seen[-1])
    for kwargs in ({"sharding": SHARDING}, {"devices": DEVICES}):
        seen.clear()
        it = data_iterator(source, output_map=["x"], size=64, prepare_first_batch=False, **kwargs)(batch_size=8)
        for _ in range(3):
            x = next(it)["x"]
            pointers = [s.data.unsafe_buffer_pointer() for s in x.addressable_shards]
            assert pointers == [outputs[0].data_ptr() for outputs in seen[-4:]]


def test_order_of_devices():
    """The parts are assigned by the order of devices in the mesh, not by their numbers."""
    x = first(NamedSharding(Mesh(DEVICES[::-1], ("batch",)), P("batch")))
    assert x[:, 0].tolist() == [40, 40, 41, 41, 42, 42, 43, 43]
    assert on_devices(x) == {3: 40, 2: 41, 1: 42, 0: 43}


def test_devices_with_the_same_part():
    grid = Mesh(np.array(DEVICES).reshape(2, 2), ("batch", "model"))
    x = first(NamedSharding(grid, P("batch")), batch_size=4)
    assert x.shape == (4, 16) and x[:, 0].tolist() == [20, 20, 21, 21]
    assert on_devices(x) == {0: 20, 1: 20, 2: 21, 3: 21}
    everywhere = first(NamedSharding(grid, P()), batch_size=2)
    assert everywhere.shape == (2, 16) and on_devices(everywhere) == dict.fromkeys(range(4), 10)
    both = first(NamedSharding(grid, P(("batch", "model"))))
    assert both[:, 0].tolist() == [40, 40, 41, 41, 42, 42, 43, 43]


def test_other_axes_split_too():
    """The rows of images are split over the devices of another axis of the mesh."""
    grid = Mesh(np.array(DEVICES).reshape(2, 2), ("batch", "rows"))

    def pictures(num_shards, shard_id):
        return fn.external_source(source=lambda i: np.arange(48).reshape(2, 4, 6).astype("i4") + 100 * shard_id)

    make = data_iterator(pictures, output_map=["x"], size=8, sharding=NamedSharding(grid, P("batch", "rows")))
    x = next(make(batch_size=4))["x"]
    want = np.arange(48).reshape(2, 4, 6)
    assert (np.asarray(x) == np.concatenate([want, want + 100])).all()
    assert [s.data.shape for s in x.addressable_shards] == [(2, 2, 6)] * 4
    assert on_devices(x) == {0: 0, 1: 12, 2: 100, 3: 112}
    with pytest.raises(ValueError, match=r"output 'x', batches of shape \(2, 3\), can't be split"):
        data_iterator(
            lambda num_shards, shard_id: source(width=3),
            output_map=["x"],
            size=8,
            sharding=NamedSharding(grid, P("batch", "rows")),
        )(batch_size=4)


def test_positional_sharding():
    positional = getattr(jax.sharding, "PositionalSharding", None)
    if positional is None:
        pytest.skip(f"JAX {jax.__version__} has no PositionalSharding any more")
    for sharding in (positional(DEVICES), positional(DEVICES).reshape(4, 1)):
        x = first(sharding)
        assert x.shape == (8, 16) and x[:, 0].tolist() == [40, 40, 41, 41, 42, 42, 43, 43]
        assert x.sharding.is_equivalent_to(positional(DEVICES).reshape(4, 1), 2)


def test_a_sharding_without_a_spec():
    x = first(jax.sharding.SingleDeviceSharding(DEVICES[2]), batch_size=2)
    assert x.shape == (2, 16) and on_devices(x) == {2: 10}


def test_devices_instead_of_a_sharding():
    def batch(devices, batch_size, **kwargs):
        return next(data_iterator(source, output_map=["x"], size=64, devices=devices, **kwargs)(batch_size=batch_size))

    x = batch(DEVICES[:2], 4)["x"]
    assert x.shape == (2, 2, 16) and x[:, 0, 0].tolist() == [20, 21] and x.devices() == set(DEVICES[:2])
    out = jax.pmap(lambda a: a + 1, devices=DEVICES[:2])(x)
    assert out[:, 0, 0].tolist() == [21, 22]
    assert batch(DEVICES[:1], 2)["x"].shape == (1, 2, 16)
    x = batch(DEVICES[2:], 4, pmap_compatible=False)["x"]
    assert x.shape == (4, 16) and on_devices(x) == {2: 20, 3: 21}


def test_epoch_of_a_sharded_computation():
    it = data_iterator(source, output_map=["x"], size=32, sharding=SHARDING)(batch_size=8)
    total = jax.jit(lambda a: a.sum())
    want = [sum(100 * i + 40 + s for s in range(4)) * 32 for i in range(4)]
    assert len(it) == 4 and [int(total(b["x"])) for b in it] == want


def test_pipelines_made_by_hand():
    pipes = []
    for shard in range(4):
        pipe = Pipeline(batch_size=2, num_threads=1)
        with pipe:
            pipe.set_outputs(source(4, shard))
        pipes.append(pipe)
    x = next(DALIGenericIterator(pipes, ["x"], size=16, sharding=SHARDING))["x"]
    assert x[:, 0].tolist() == [40, 40, 41, 41, 42, 42, 43, 43] and x.sharding == SHARDING
    x = next(DALIGenericIterator(pipes[:3], ["x"], size=12))["x"]
    assert x.shape == (3, 2, 16)


def files_in_shards(files, shards, **reader):
    return lambda num_shards=1, shard_id=0: fn.readers.file(
        files=files,
        labels=list(range(len(files))),
        name="reader",
        num_shards=num_shards if shards else 1,
        shard_id=shard_id if shards else 0,
        **reader,
    )


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{i:02d}.bin" for i in range(11)]
    for p in paths:
        p.write_bytes(bytes(8))
    return [str(p) for p in paths]


def test_a_reader_that_is_not_told_of_the_shards(files):
    arguments = {"output_map": ["x", "label"], "reader_name": "reader", "sharding": SHARDING}
    with pytest.warns(UserWarning, match="reads the whole data set for each of the 4 shards"):
        data_iterator(files_in_shards(files, False), **arguments)(batch_size=8)


def test_peeking_and_padding(files):
    arguments = {"output_map": ["x", "label"], "reader_name": "reader", "sharding": SHARDING}
    it = peekable_data_iterator(files_in_shards(files, True, pad_last_batch=True), **arguments)(batch_size=8)
    assert it.element_spec["label"].shape == (8, 1) and it.peek()["label"].sharding.is_equivalent_to(SHARDING, 2)
    masks, labels = [], []
    for batch in it:
        masks.append(np.asarray(it.is_nonpadding))
        labels.append(np.asarray(batch["label"]).ravel())
        assert it.is_nonpadding.sharding.is_equivalent_to(SHARDING, 1)
    assert len(masks) == 2 and masks[0].all()
    assert sorted(np.concatenate([b[m] for b, m in zip(labels, masks)]).tolist()) == list(range(11))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: first(SHARDING, batch_size=6), ValueError, "can't be split evenly into 4 shards"),
        (lambda: first(SHARDING, batch_size=None), ValueError, "needs a batch_size"),
        (lambda: first("batch"), TypeError, "jax.sharding.Sharding.*got str"),
        (
            lambda: data_iterator(source, output_map=["x"], sharding=SHARDING)(batch_size=8, shard_id=1),
            TypeError,
            "'shard_id' follows from the sharding",
        ),
        (lambda: data_iterator(source, output_map=["x"], devices=["cpu:0"]), TypeError, "list of jax.Device"),
        (lambda: data_iterator(source, output_map=["x"], devices=[]), ValueError, "list of devices"),
        (lambda: data_iterator(source, output_map=["x"], devices=DEVICES[:1] * 2), ValueError, "differ"),
        (
            lambda: data_iterator(source, output_map=["x"], sharding=SHARDING)(batch_size=8, checkpoints=["{}"]),
            ValueError,
            "1 states, but there are 4 pipelines",
        ),
        (
            lambda: DALIGenericIterator([], ["x"], sharding=SHARDING),
            ValueError,
            "4 shards of the batch in this process, but there are 0 pipelines",
        ),
        (
            lambda: first(SHARDING, last_batch_policy="PARTIAL"),
            ValueError,
            "PARTIAL needs a single pipeline without sharding",
        ),
        (lambda: first(SHARDING, pmap_compatible=True), ValueError, "exclude each other"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()
