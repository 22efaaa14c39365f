# SPDX-License-Identifier: Apache-2.0
"""Pipelines as datasets of TensorFlow: elements without a copy; epochs; graphs, Keras, several devices."""

import gc
import itertools
import threading

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: pip install penstock[tf]")

from test_iterator_grid import EPOCHS, labels, model  # noqa: E402

from penstock import Pipeline, fn, pipeline_def  # noqa: E402
from penstock.core.kernels import library  # noqa: E402
from penstock.plugin.epochs import LastBatchPolicy  # noqa: E402
from penstock.plugin.tf import (  # noqa: E402
    DALIDataset,
    dataset_compatible_tensorflow,
    dataset_distributed_compatible_tensorflow,
    dataset_inputs_compatible_tensorflow,
    dataset_options,
    serialize_pipeline,
)

DEVICES = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(DEVICES[0], [tf.config.LogicalDeviceConfiguration()] * 2)
TYPES = (tf.uint8, tf.int32)


def numbers(dataset, n=None):
    """The second output of each element, flattened."""
    return [label.numpy().ravel().tolist() for _, label in itertools.islice(dataset, n)]


def test_an_element(make):
    dataset = DALIDataset(make.reader(), TYPES, ((None, 8), (None,)))
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec == (tf.TensorSpec((None, 8), tf.uint8), tf.TensorSpec((None,), tf.int32))
    data, label = next(iter(dataset))
    assert data.shape == (2, 8) and data.dtype == tf.uint8 and label.numpy().tolist() == [0, 1]


def test_types_and_ranks_of_the_first_batch_by_default(make):
    spec = DALIDataset(make.reader()).element_spec
    assert spec == (tf.TensorSpec((None, None), tf.uint8), tf.TensorSpec((None, None), tf.int32))
    one = make.source(lambda i: np.zeros((2, 3, 4), "f8"))
    assert DALIDataset(one).element_spec == tf.TensorSpec((None, None, None), tf.float64)


@pytest.mark.parametrize("types", [TYPES, list(TYPES), ("uint8", "int32"), {"x": tf.uint8, "y": tf.int32}])
def test_the_nesting_of_the_types_is_that_of_the_elements(make, types):
    element = next(iter(DALIDataset(make.reader(), types)))
    if isinstance(types, dict):
        assert list(element) == ["x", "y"]
        element = tuple(element.values())
    assert isinstance(element, tuple) and element[1].numpy().tolist() == [[0], [1]]
    nested = next(iter(DALIDataset(make.reader(), ((tf.uint8,), tf.int32))))
    assert nested[0][0].shape == (2, 8)


@pytest.mark.parametrize(
    ("shapes", "got"),
    [
        (None, (2, 1, 3)),
        ((2, 1, 3), (2, 1, 3)),
        ((None, None, 3), (2, 1, 3)),
        ((2, 3), (2, 3)),
        (((None, 3),), (2, 3)),
        (tf.TensorShape([2, None]), (2, 3)),
        (tf.TensorShape(None), (2, 1, 3)),
    ],
)
def test_extents_of_one_are_left_out(make, shapes, got):
    pipe = make.source(lambda i: np.zeros((2, 1, 3), "f4"))
    assert next(iter(DALIDataset(pipe, tf.float32, shapes))).shape == got


def test_a_batch_of_one_without_its_axis(make):
    pipe = make.source(lambda i: np.zeros((1, 4, 3), "f4"), batch_size=1)
    assert next(iter(DALIDataset(pipe, tf.float32, (4, 3)))).shape == (4, 3)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "u2", "u4", "u8"])
def test_types(make, dtype):
    x = np.array([[0, 1], [2, 3]]).astype(dtype)
    got = next(iter(DALIDataset(make.source(lambda i: x), tf.as_dtype(x.dtype)))).numpy()
    assert got.dtype == x.dtype and (got == x).all()


def test_no_copy(make, monkeypatch):
    """Tensors use the memory in which the pipeline wrote the batch, also with other shapes, which are views."""
    seen, run = set(), Pipeline.run

    def spied(*args):
        outputs = run(*args)
        seen.add(outputs[0].data_ptr())
        return outputs

    monkeypatch.setattr(Pipeline, "run", spied)
    pipe = make.source(lambda i: np.full((2, 64, 64, 1), i, "f4"), is_copied=True)
    tensors = list(itertools.islice(DALIDataset(pipe, tf.float32, (None, 64, 64)), 5))
    for i, t in enumerate(tensors):
        assert np.from_dlpack(t).ctypes.data in seen and t[1, 5, 5].numpy() == i


def test_the_pipeline_is_left_as_it_is(make):
    pipe = make.reader()
    dataset = DALIDataset(pipe, TYPES, batch_size=3, num_threads=2, device_id=None)
    assert numbers(dataset, 2) == [[0, 1, 2], [3, 4, 5]]
    assert pipe.run()[1].as_array().ravel().tolist() == [0, 1] and pipe.max_batch_size == 2


def test_a_pipeline_whose_batch_size_was_left_open(make):
    assert numbers(DALIDataset(make.reader(batch_size=None), TYPES, batch_size=3), 1) == [[0, 1, 2]]


def test_functions_of_python(make):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(source=lambda info: np.int32([info.idx_in_epoch]), batch=False)
        return fn.python_function(x, function=lambda v: v * 10)

    assert [x.numpy().ravel().tolist() for x in DALIDataset(pipe(), tf.int32).take(2)] == [[0, 10], [20, 30]]


# Epochs -----------------------------------------------------------------------------------------------------------


def test_without_epochs_each_iterator_begins_anew(make):
    dataset = DALIDataset(make.reader(n=5, random_shuffle=True, seed=4), TYPES)
    first = numbers(dataset, 7)  # more than an epoch: it has no end
    assert len(first) == 7 and numbers(dataset, 7) == first
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY
    ending = DALIDataset(make.source([np.full((2, 1), i, "i4") for i in range(3)]), tf.int32)
    assert [[x.numpy()[0, 0] for x in ending] for _ in range(2)] == [[0, 1, 2]] * 2


GRID = list(itertools.product((3, 7), (2, 3), (False, True), LastBatchPolicy))


def test_epochs_of_a_reader(files):
    """Each iterator is one epoch, as with the iterators of all frameworks."""
    for n, batch_size, pad, policy in GRID:
        pipe = labels(files[:n], 0, 1, pad, False, {}, batch_size=batch_size)
        dataset = DALIDataset(pipe, tf.int32, (None,), reader_name="reader", last_batch_policy=policy)
        want = [[parts[0] for parts in batches] for _, batches in model(n, batch_size, 1, pad, False, policy)]
        assert [[x.numpy().tolist() for x in dataset] for _ in range(EPOCHS)] == want, (n, batch_size, pad, policy)


def test_epochs_are_shuffled_anew_and_complete(make):
    dataset = DALIDataset(
        make.reader(random_shuffle=True, pad_last_batch=True), TYPES, reader_name="reader", last_batch_policy="partial"
    )
    epochs = [sum(numbers(dataset), []) for _ in range(4)]
    assert all(sorted(e) == list(range(7)) for e in epochs) and len({tuple(e) for e in epochs}) > 1
    assert sorted(sum(numbers(dataset.repeat(2)), [])) == sorted([*range(7)] * 2)


def test_length(make):
    for policy, n in (("partial", 4), ("drop", 3)):
        dataset = DALIDataset(make.reader(), TYPES, reader_name="reader", last_batch_policy=policy)
        assert len(dataset) == n and len(numbers(dataset)) == n
    fill = DALIDataset(make.reader(), TYPES, reader_name="reader")  # of 4 and 3 batches
    assert fill.cardinality() == tf.data.UNKNOWN_CARDINALITY and [len(numbers(fill)) for _ in range(2)] == [4, 3]
    sized = DALIDataset(make.reader(), TYPES, size=5, last_batch_policy="partial")
    assert [len(n) for n in numbers(sized)] == [2, 2, 1]


def test_loops_that_count(make):
    """They create the next iterator while the previous, exhausted one still exists."""
    dataset = DALIDataset(make.reader(), TYPES, reader_name="reader")
    before = iter(dataset)
    assert [next(before)[1].numpy()[0, 0] for _ in range(4)] == [0, 2, 4, 6]
    assert next(iter(dataset))[1].numpy().ravel().tolist() == [1, 2]  # the epoch before was filled up with 0


def test_an_epoch_that_was_left_is_dropped(make):
    dataset = DALIDataset(make.reader(n=8), TYPES, reader_name="reader")
    assert numbers(dataset, 1) == [[0, 1]]
    gc.collect()
    assert numbers(dataset) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_two_iterators_at_the_same_time(make):
    dataset = DALIDataset(make.reader(n=4), TYPES, reader_name="reader")
    pairs = [(a[1].numpy()[0, 0], b[1].numpy()[0, 0]) for a, b in tf.data.Dataset.zip(dataset, dataset)]
    assert pairs == [(0, 0), (2, 2)]


def test_an_error_costs_one_batch(make, files):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.readers.file(files=[*files[:3], files[3] + ".missing", *files[4:6]], labels=range(6), name="reader")

    dataset = DALIDataset(pipe(), TYPES, reader_name="reader")
    with pytest.raises(tf.errors.OpError, match=r"03\.bin\.missing"):
        numbers(dataset)
    assert numbers(dataset.ignore_errors()) == [[0, 1], [4, 5]]
    skipping = DALIDataset(pipe(on_error="skip"), TYPES, reader_name="reader")
    assert numbers(skipping) == [[0, 1], [2], [4, 5]]


def test_pipelines_go_with_their_dataset(make):
    """Memory and threads are released, also for pipelines that wait for their next epoch."""
    gc.collect()
    before, threads = library().memory_used(), set(threading.enumerate())
    for epochs in ({}, {"size": 4}, {"size": 7}):
        dataset = DALIDataset(make.source(lambda i: np.zeros((2, 1000), "i4"), is_copied=True), tf.int32, **epochs)
        kept = list(itertools.islice(dataset, 3))
    del dataset, kept
    gc.collect()
    list(DALIDataset(make.source([np.zeros((2, 1), "i4")]), tf.int32))  # TensorFlow lets go when it calls Python again
    gc.collect()
    left = [t for t in set(threading.enumerate()) - threads if "Dummy" not in t.name]  # those are TensorFlow's own
    assert library().memory_used() - before <= 8192 and not left


# Graphs, Keras, several devices ------------------------------------------------------------------------------------


def test_in_a_function(make):
    dataset = DALIDataset(make.source([np.full((2, 1), i, "i4") for i in range(4)]), tf.int32, (2, 1))

    @tf.function
    def total(data):
        result = 0
        for x in data:
            result += tf.reduce_sum(x)
        return result

    assert total(dataset).numpy() == 12 and total(dataset.map(lambda x: x + 1).prefetch(1)).numpy() == 20


def test_in_a_graph(make):
    """As in programs for TensorFlow 1."""
    with tf.Graph().as_default():
        dataset = DALIDataset(make.source([np.full((2, 1), i, "i4") for i in range(3)]), tf.int32, (2, 1))
        x = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        with tf.compat.v1.Session() as session:
            assert [session.run(x)[0, 0] for _ in range(3)] == [0, 1, 2]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(x)


def test_options(make):
    dataset = DALIDataset(make.reader(), TYPES)
    for d in (dataset, dataset.with_options(dataset_options()), dataset.map(lambda x, y: (x, y))):
        assert d.options().autotune.enabled is False and numbers(d, 1) == [[0, 1]]
    assert dataset_compatible_tensorflow() and dataset_inputs_compatible_tensorflow()
    assert dataset_distributed_compatible_tensorflow()
    assert Pipeline.deserialize(serialize_pipeline(make.reader())).run()[1].as_array().ravel().tolist() == [0, 1]


def of_two_classes(batch_size=16):
    """Vectors of two linearly separable classes."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(64, 4)).astype("f4")
    y = (x.sum(1) > 0).astype("i4")

    @pipeline_def(batch_size=batch_size, num_threads=1)
    def pipe():
        rows = fn.external_source(
            source=lambda info: (x[info.idx_in_epoch % 64], y[info.idx_in_epoch % 64]), num_outputs=2, batch=False
        )
        return tuple(rows)

    return pipe()


def model_of_keras():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.5), loss)
    return model


@pytest.mark.parametrize("epochs", [{"size": 64, "last_batch_policy": "drop"}, {}])
def test_keras(epochs):
    dataset = DALIDataset(of_two_classes(), (tf.float32, tf.int32), ((None, 4), (None,)), **epochs)
    steps = {} if epochs else {"steps_per_epoch": 4}
    losses = model_of_keras().fit(dataset, epochs=4, verbose=0, **steps).history["loss"]
    assert len(losses) == 4 and losses[-1] < 0.7 * losses[0]


def test_a_strategy_splits_the_batches():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = DALIDataset(of_two_classes(), (tf.float32, tf.int32), ((16, 4), (16,)), size=64)
    value = next(iter(strategy.experimental_distribute_dataset(dataset)))[0]
    parts = strategy.experimental_local_results(value)
    assert [p.shape for p in parts] == [(8, 4), (8, 4)]
    with strategy.scope():
        keras = model_of_keras()
    assert keras.fit(dataset, epochs=3, verbose=0).history["loss"][-1] < 0.6


def test_a_pipeline_for_each_replica(make):
    """Each has its shard, as in DALI programs for several GPUs."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    shards = iter(range(2))

    def dataset(context):
        shard = next(shards)
        with tf.device(f"/cpu:{shard}"):
            return DALIDataset(make.reader(n=8, shard=shard, n_shards=2, stick_to_shard=True), TYPES, ((2, 8), (2, 1)))

    options = tf.distribute.InputOptions(
        experimental_place_dataset_on_device=True,
        experimental_fetch_to_device=False,
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
    )
    both = iter(strategy.distribute_datasets_from_function(dataset, options))
    got = [[p.numpy().ravel().tolist() for p in strategy.experimental_local_results(next(both)[1])] for _ in range(3)]
    assert got == [[[0, 1], [4, 5]], [[2, 3], [6, 7]], [[0, 1], [4, 5]]]
