# SPDX-License-Identifier: Apache-2.0
"""Batches computed by workers are the same as without workers."""

import json

import numpy as np
import pytest
from pipelines import SIZE, N, all_ready, assert_same, pictures, pool_of, values, write_pictures

from penstock import Pipeline, fn, pipeline_def


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("pictures"))


ORDERS = [
    {},
    {"random_shuffle": True, "initial_fill": 9},
    {"shuffle_after_epoch": True, "num_shards": 3, "shard_id": 1},
    {"random_shuffle": True, "num_shards": 2, "shard_id": 0, "pad_last_batch": True, "stick_to_shard": True},
]


@pytest.mark.parametrize("order", ORDERS, ids=range(len(ORDERS)))
def test_bytes_and_checkpoints_over_epochs(files, order):
    plain, crewed = pictures(files, **order), pictures(files, **order, workers=2)
    for i in range(3 * N // SIZE):
        assert_same(values(plain.run()), values(crewed.run()), i)
        assert plain.checkpoint() == crewed.checkpoint()
    assert crewed.run()[0][0].source_info() == plain.run()[0][0].source_info()
    crewed.close()


def test_samples_are_numpys(files):
    """Compared with Pillow's decoded images instead of our pipeline."""
    from PIL import Image

    pipe = pictures(files, workers=2)
    for i in range(4):
        whole, _, labels = pipe.run()
        for k in range(SIZE):
            which = (i * SIZE + k) % N
            assert int(np.asarray(labels[k])[0]) == which
            np.testing.assert_array_equal(np.asarray(whole[k]), np.asarray(Image.open(files[which])))
    pipe.close()


def test_batches_stay_what_they_are_while_others_come(files):
    """The memory of a batch is reused only when nothing refers to it."""
    plain, crewed = pictures(files, random_shuffle=True), pictures(files, random_shuffle=True, workers=2)
    kept = [crewed.run() for _ in range(25)]
    for i, batch in enumerate(kept):
        assert_same(values(plain.run()), values(batch), i)
    array = kept[3][1].as_array()
    before = array.copy()
    crewed.close()
    del kept, batch, crewed
    np.testing.assert_array_equal(array, before)


def test_reset(files):
    def epochs(**kwargs):
        pipe = pictures(files, random_shuffle=True, **kwargs)
        seen = []
        for k in (3, 9, 4):
            seen += [values(pipe.run()) for _ in range(k)]
            pipe.reset()
        pipe.close()
        return seen

    for i, (a, b) in enumerate(zip(epochs(), epochs(workers=2))):
        assert_same(a, b, i)


@pipeline_def(batch_size=4, seed=5, num_threads=1)
def labelled(files):
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))), random_shuffle=True, name="files")
    return fn.resize(fn.decoders.image(data), size=(8, 8)), labels


def test_iterator_of_pytorch(files):
    torch = pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    def epochs(**kwargs):
        it = DALIGenericIterator(labelled(files, **kwargs), ["x", "y"], reader_name="files", auto_reset=True)
        return [batch[0] for _ in range(2) for batch in it]

    plain, crewed = epochs(), epochs(workers=2)
    assert len(plain) == len(crewed) > 16
    assert all(torch.equal(a[k], b[k]) for a, b in zip(plain, crewed) for k in "xy")


def test_iterator_of_jax(files):
    """The decorator accepts the pipeline's arguments."""
    pytest.importorskip("jax")
    from penstock.plugin.jax import data_iterator

    @data_iterator(output_map=["x", "y"], reader_name="files", auto_reset=True)
    def batches(files):
        data, labels = fn.readers.file(files=files, labels=list(range(len(files))), random_shuffle=True, name="files")
        return fn.resize(fn.decoders.image(data), size=(8, 8)), labels

    def epoch(**kwargs):
        made = batches(files, batch_size=4, seed=5, num_threads=1, device_id=None, **kwargs)
        return [{k: np.asarray(v) for k, v in batch.items()} for batch in made]

    plain, crewed = epoch(), epoch(workers=2)
    assert len(plain) == len(crewed) > 8
    assert all(np.array_equal(a[k], b[k]) for a, b in zip(plain, crewed) for k in "xy")


def test_checkpoint_at_every_step_goes_on_with_other_workers(files):
    order = {"random_shuffle": True, "num_shards": 1, "shard_id": 0}
    plain = pictures(files, **order)
    expected = [values(plain.run()) for _ in range(2 * N // SIZE + 3)]
    first, saved = pictures(files, **order, workers=1), []
    for _ in range(N // SIZE + 1):
        first.run()
        saved.append(first.checkpoint())
    first.close()
    for step, checkpoint in enumerate(saved, 1):
        again = pictures(files, **order, workers=step % 3, checkpoint=checkpoint)
        for i in range(step, step + 2):
            assert_same(expected[i], values(again.run()), (step, i))
        again.close()


def test_going_on_with_other_shards_and_workers(files):
    """The rest of an epoch is redistributed, and workers know its order."""
    before = pictures(files, random_shuffle=True, num_shards=2, shard_id=0, workers=2)
    for _ in range(2):
        before.run()
    saved = before.checkpoint()
    before.close()
    shards = {"random_shuffle": True, "num_shards": 3, "shard_id": 1, "checkpoint": saved}
    plain, crewed = pictures(files, **shards), pictures(files, **shards, workers=2)
    for i in range(10):
        assert_same(values(plain.run()), values(crewed.run()), i)
    crewed.close()


def test_no_readers():
    @pipeline_def(batch_size=3, seed=2, num_threads=1)
    def numbers():
        return fn.random.uniform(range=(0, 1)), fn.random.normal(shape=(2, 3))

    plain, crewed = numbers(), numbers(workers=2)
    for _ in range(9):
        assert_same(values(plain.run()), values(crewed.run()))
    crewed.close()


def test_mix_of_readers(files):
    @pipeline_def(batch_size=SIZE, seed=2, num_threads=1)
    def mixed():
        a = fn.readers.file(files=files[:9], labels=[0] * 9, random_shuffle=True)
        b = fn.readers.file(files=files[9:], labels=[1] * (N - 9))
        data, labels = fn.mix(a, b, weights=[1, 2])
        return fn.decoders.image(data), labels

    plain, crewed = mixed(), mixed(workers=2)
    for i in range(12):
        assert_same(values(plain.run()), values(crewed.run()), i)
    crewed.close()


def test_stats_trace_and_serialisation(files, tmp_path):
    pipe = pictures(files, workers=2)
    all_ready(pipe)
    for _ in range(30):
        pipe.run()
    stats = pipe.stats().as_dict()
    assert stats["batches"] >= 8
    assert "decoders.image" in str(pipe.stats())
    assert "2 workers of 1 thread, 7 batches ahead" in pipe.explain().splitlines()[0]
    pipe.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert len([n for n in names if n.startswith("thread")]) == 2  # one per worker
    again = Pipeline.deserialize(pipe.serialize())
    assert again._settings.workers == 0
    pipe.close()


def test_one_batch_asked_for_at_a_time(files):
    plain, crewed = pictures(files), pictures(files, workers=2, exec_async=False, exec_pipelined=False)
    for i in range(9):
        assert_same(values(plain.run()), values(crewed.run()), i)
    assert pool_of(crewed).window > 1
    crewed.close()
