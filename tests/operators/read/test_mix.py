# SPDX-License-Identifier: Apache-2.0
"""fn.mix: which reader each sample comes from, and that the samples are those of the readers."""

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def, tfrecord, types

SIZES = (30, 7, 12)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three folders of files. The label of a file is its number among all files, its content is its name."""
    root = tmp_path_factory.mktemp("mix")
    found, first = [], 0
    for k, n in enumerate(SIZES):
        paths = [root / f"{k}-{i:02}.bin" for i in range(n)]
        for path in paths:
            path.write_bytes(path.name.encode())
        found.append({"files": [str(p) for p in paths], "labels": list(range(first, first + n))})
        first += n
    return found


def build(
    folders, weights=None, batch_size=10, seed=1, num_threads=2, on_error="raise", pipeline=None, mix=None, **kwargs
):
    options = {"batch_size": batch_size, "num_threads": num_threads, "seed": seed, "on_error": on_error}

    @pipeline_def(**options, **(pipeline or {}))
    def pipe():
        readers = [fn.readers.file(**f, **kwargs) for f in folders]
        return tuple(fn.mix(*readers, weights=weights, name="mix", **(mix or {})))

    return pipe()


def labels(pipe, n):
    got = []
    while len(got) < n:
        got += pipe.run()[1].as_array().ravel().tolist()
    return got[:n]


@pytest.mark.parametrize("outputs", ["list", "one", "dictionary"])
def test_serialized(folders, outputs, tmp_path):
    import tfrecord_files as tf

    paths = []
    for k, n in enumerate(SIZES):
        records = [tf.record(tf.example({"x": tf.integers(sum(SIZES[:k]) + i)})) for i in range(n)]
        paths.append(tmp_path / f"{k}.tfrecord")
        paths[-1].write_bytes(b"".join(records))

    @pipeline_def(batch_size=10, num_threads=2, seed=1)
    def pipe():
        kwargs = {"weights": [3, 2, 1], "seed": 5}
        if outputs == "dictionary":
            return fn.mix(*(fn.readers.tfrecord(path=str(p), features=features) for p in paths), **kwargs)["x"]
        readers = [fn.readers.file(**f) for f in folders]
        if outputs == "one":
            return fn.mix(*(labels for _, labels in readers), **kwargs)
        return fn.mix(*readers, **kwargs)[1]

    features = {"x": tfrecord.FixedLenFeature([1], tfrecord.int64, 0)}

    def values(p):
        return [x for _ in range(30) for x in p.run()[0].as_array().ravel().tolist()]

    first, wanted = pipe(), values(pipe())
    again = Pipeline.deserialize(first.serialize())
    assert values(again) == wanted and len(set(wanted)) == sum(SIZES)
    assert again.serialize() == first.serialize()


def reader_of(label):
    return np.searchsorted(np.cumsum(SIZES), label, "right")


@pytest.mark.parametrize("weights", [None, [1, 1, 1], [0.7, 0.2, 0.1], [100, 1, 30]], ids=str)
@pytest.mark.parametrize("seed", [1, 2])
def test_shares(folders, weights, seed):
    got = reader_of(labels(build(folders, weights, seed=seed), 2000))
    share = np.array(weights or [1, 1, 1]) / np.sum(weights or [1, 1, 1])
    counts = np.cumsum(got[:, None] == np.arange(3), axis=0)
    behind = np.abs(counts - share * np.arange(1, 2001)[:, None])
    assert behind.max() <= 3, "a reader is more than a sample for each reader away from its share"


def test_the_seed_says_which_readers(folders):
    orders = [tuple(reader_of(labels(build(folders, [3, 2, 1], seed=seed), 200))) for seed in (1, 1, 2, 3)]
    assert orders[0] == orders[1] and len(set(orders)) == 3
    own = [tuple(reader_of(labels(build(folders, [3, 2, 1], seed=s, mix={"seed": 9}), 200))) for s in (1, 2)]
    assert own[0] == own[1]


@pytest.mark.parametrize(
    "order", [{}, {"shuffle": "global"}, {"random_shuffle": True}, {"shuffle_after_epoch": True}], ids=str
)
def test_each_reader_keeps_its_order(folders, order):
    got = np.array(labels(build(folders, [5, 2, 3], **order), 400))
    for k, folder in enumerate(folders):

        @pipeline_def(batch_size=5, num_threads=1, seed=1)
        def alone():
            return fn.readers.file(**folder, **order)  # noqa: B023

        mine = got[reader_of(got) == k].tolist()
        assert len(mine) > 50 and mine == labels(alone(), len(mine))


@pytest.mark.parametrize(
    "options", [{"batch_size": 1}, {"batch_size": 64}, {"num_threads": 4, "batch_size": 7}], ids=str
)
def test_batches_and_threads_do_not_matter(folders, options):
    wanted = labels(build(folders, [3, 1, 2], shuffle="global"), 300)
    depth = {"pipeline": {"prefetch_queue_depth": 4}}
    assert labels(build(folders, [3, 1, 2], shuffle="global", **options, **depth), 300) == wanted


def test_contents_sources_and_labels_belong_together(folders):
    names = [f.rsplit("/", 1)[1] for folder in folders for f in folder["files"]]
    contents, numbers = build(folders, batch_size=40).run()
    for i, k in enumerate(numbers.as_array().ravel().tolist()):
        assert bytes(contents.at(i)).decode() == names[k]
        assert contents[i].source_info().endswith(names[k]) and numbers[i].source_info().endswith(names[k])


@pytest.mark.parametrize("order", [{"shuffle": "global"}, {"stick_to_shard": True}], ids=str)
@pytest.mark.parametrize("num_shards", [2, 3])
def test_shards_have_each_sample_of_a_reader_once(folders, order, num_shards):
    parts = [
        np.array(labels(build(folders, [2, 1, 1], num_shards=num_shards, shard_id=i, seed=5 + i, **order), 300))
        for i in range(num_shards)
    ]
    assert len({tuple(reader_of(p)) for p in parts}) == 1, "shards take from the same reader at the same time"
    for k, (size, first) in enumerate(zip(SIZES, np.cumsum((0, *SIZES)))):
        got = []
        for shard, part in enumerate(parts):
            got += part[reader_of(part) == k][: (shard + 1) * size // num_shards - shard * size // num_shards].tolist()
        assert sorted(got) == list(range(first, first + size))


@pytest.mark.parametrize("order", [{}, {"shuffle": "global"}, {"random_shuffle": True}], ids=str)
def test_checkpoints(folders, order):
    kwargs = {"weights": [4, 1, 2], "batch_size": 9, **order}
    first = build(folders, pipeline={"enable_checkpointing": True}, **kwargs)
    for _ in range(13):
        first.run()
    saved = first.checkpoint()
    again = build(folders, pipeline={"enable_checkpointing": True, "checkpoint": saved}, **kwargs)
    for _ in range(10):
        for a, b in zip(first.run(), again.run()):
            assert [bytes(x) for x in map(np.asarray, (a.at(i) for i in range(9)))] == [
                bytes(x) for x in map(np.asarray, (b.at(i) for i in range(9)))
            ]
    with pytest.raises(ValueError, match="weights is"):
        build(folders, pipeline={"checkpoint": saved}, **{**kwargs, "weights": [4, 1, 3]}).build()


def test_resumed_with_other_shards(folders):
    """Every reader continues with the rest of its epoch."""
    kwargs = {"weights": [1, 1, 1], "batch_size": 4, "shuffle": "global", "mix": {"seed": 2}}
    saving = {"enable_checkpointing": True}
    two = [build(folders, num_shards=2, shard_id=i, pipeline=saving, **kwargs) for i in range(2)]
    seen = [x for _ in range(2) for p in two for x in labels(p, 4)]
    saved = [p.checkpoint() for p in two]
    three = [
        build(folders, num_shards=3, shard_id=i, pipeline={**saving, "checkpoint": saved}, **kwargs) for i in range(3)
    ]
    parts = [labels(p, 40) for p in three]
    for k, (size, first) in enumerate(zip(SIZES, np.cumsum((0, *SIZES)))):
        got = [x for x in seen if reader_of(x) == k]
        left = size - len(got)
        assert 0 < len(got) < size
        for i, part in enumerate(parts):
            got += [x for x in part if reader_of(x) == k][: (left - i + 2) // 3]
        assert sorted(got) == list(range(first, first + size))


def test_random_numbers_do_not_depend_on_the_batch(folders):
    @pipeline_def(num_threads=2, seed=4)
    def pipe():
        readers = [fn.readers.file(**f) for f in folders]
        _, numbers = fn.mix(*readers, weights=[2, 1, 1])
        return numbers, fn.random.uniform(numbers, range=(0.0, 1.0))

    def pairs(batch_size):
        p = pipe(batch_size=batch_size)
        out = [p.run() for _ in range(60 // batch_size)]
        return [tuple(float(x.at(i).ravel()[0]) for x in o) for o in out for i in range(batch_size)]

    assert pairs(4) == pairs(20)
    assert len({u for _, u in pairs(20)}) == 60, "samples of different readers draw the same random numbers"


def test_bad_samples(folders, tmp_path):
    damaged = [dict(f) for f in folders]
    damaged[1] = {"files": [*damaged[1]["files"][:3], str(tmp_path / "no.bin")], "labels": [30, 31, 32, 99]}
    wanted = labels(build(damaged[:1] + damaged[2:], batch_size=30), 10)
    pipe = build(damaged, batch_size=30, on_error="skip")
    got = pipe.run()[1].as_array().ravel().tolist()
    assert 99 not in got and 27 <= len(got) < 30 and set(wanted) & set(got)
    assert pipe.errors()[0].source.endswith("no.bin")
    replaced = build(damaged, batch_size=30, on_error="replace").run()[1].as_array().ravel()
    assert len(replaced) == 30 and 99 not in replaced.tolist()
    with pytest.raises(RuntimeError, match="no.bin"):
        build(damaged, batch_size=30).run()


def test_epochs_of_iterators(folders):
    pipe = build(folders, batch_size=10)
    assert pipe.epoch_size("mix") == sum(SIZES)
    assert build(folders, mix={"num_samples": 33}).epoch_size("mix") == 33
    meta = build(folders, num_shards=2, shard_id=1).reader_meta("mix")
    assert (meta["number_of_shards"], meta["shard_id"], meta["epoch_size"]) == (2, 1, sum(SIZES))


def test_other_kinds_of_outputs(folders, tmp_path):
    """Several outputs, one output, and outputs of different readers."""
    np.save(tmp_path / "a.npy", np.frombuffer(b"an array", "u1"))

    @pipeline_def(batch_size=6, num_threads=1)
    def pipe():
        contents, _ = fn.readers.file(**folders[0])
        return fn.mix(contents, fn.readers.numpy(files=str(tmp_path / "a.npy")), weights=[1, 1])

    out = pipe().run()[0]
    assert sorted(bytes(out.at(i))[:2] for i in range(6)).count(b"an") == 3


def test_the_imperative_debug_mode_gives_the_same(folders):
    wanted = labels(build(folders, [3, 1, 2]), 40)
    assert labels(build(folders, [3, 1, 2], pipeline={"debug": True}), 40) == wanted


def _with(make, **kwargs):
    @pipeline_def(batch_size=2, num_threads=1, **kwargs)
    def pipe():
        return make()

    return pipe()


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda a, b: fn.mix(), "outputs of at least two readers; got 0"),
        (lambda a, b: fn.mix(a), "outputs of at least two readers; got 1"),
        (lambda a, b: fn.mix(a, a), "reader 2 is the same as one before it"),
        (lambda a, b: fn.mix(a, b, weights=[1]), "a number above 0 for each of the 2 readers"),
        (lambda a, b: fn.mix(a, b, weights=[1, 0]), "a number above 0 for each of the 2 readers"),
        (lambda a, b: fn.mix(a, b, weights=[1, float("nan")]), "a number above 0 for each of the 2 readers"),
        (lambda a, b: fn.mix(a, b, num_samples=0), "num_samples takes at least 1; got 0"),
        (lambda a, b: fn.mix(a, b[0]), "reader 2 gives 1 outputs, the first one 2 outputs"),
        (lambda a, b: fn.mix(a, (a[0], b[1])), "argument 2 has outputs of different readers"),
        (lambda a, b: fn.mix(a, fn.cast(b[1], dtype=types.FLOAT)), "argument 2 comes from fn.cast"),
        (lambda a, b: fn.mix(a, 7), "argument 2 comes from 7"),
        (lambda a, b: fn.mix(readers=7), "by position"),
    ],
    ids=range(12),
)
def test_errors_of_arguments(folders, call, error):
    def make():
        return tuple(call(fn.readers.file(**folders[0]), fn.readers.file(**folders[1])))

    with pytest.raises((ValueError, TypeError), match=error):
        _with(make).build()


@pytest.mark.parametrize(
    "second, error",
    [
        ({"num_shards": 2}, "reader 2 has num_shards=2, the first one 1"),
        ({"pad_last_batch": True}, "reader 2 pads its epochs"),
    ],
    ids=str,
)
def test_readers_that_do_not_fit(folders, second, error):
    def make():
        return tuple(fn.mix(fn.readers.file(**folders[0]), fn.readers.file(**folders[1], **second)))

    with pytest.raises(ValueError, match=error):
        _with(make).build()


def test_a_reader_that_is_used_otherwise(folders):
    def make():
        a, b = fn.readers.file(**folders[0]), fn.readers.file(**folders[1])
        return (*fn.mix(a, b), a[1])

    with pytest.raises(ValueError, match="its samples are also mixed by fn.mix"):
        _with(make).build()


def test_outputs_that_do_not_fit(folders, tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2), "f4"))

    def make():
        return fn.mix(fn.readers.file(**folders[0])[0], fn.readers.numpy(files=str(tmp_path / "a.npy")))

    with pytest.raises(RuntimeError, match="reader 2 gives output 0 as float32 of 2 dimensions"):
        _with(make).run()


def test_a_missing_data_set(folders):
    def make():
        return tuple(fn.mix(fn.readers.file(**folders[0]), fn.readers.file(file_root="/no/such/folder")))

    with pytest.raises((ValueError, RuntimeError), match="/no/such/folder"):
        _with(make).build()


def test_with_an_iterator(folders):
    pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    @pipeline_def(batch_size=8, num_threads=1, seed=1)
    def only_labels():
        return fn.mix(*(fn.readers.file(**f)[1] for f in folders), name="mix")

    iterator = DALIGenericIterator(
        only_labels(), ["label"], reader_name="mix", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )
    for _ in range(2):
        assert sum(len(batch[0]["label"]) for batch in iterator) == sum(SIZES)
