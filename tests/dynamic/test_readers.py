# SPDX-License-Identifier: Apache-2.0
"""Readers, data of the program, generators, checkpoints, and torchdata's nodes."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from operators.read import tfrecord_files as records
from penstock import fn, pipeline_def, tfrecord
from penstock.core.errors import PipelineError
from penstock.experimental import dynamic as ndd

pytest.importorskip("torch")

N = 7


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{i}.bin" for i in range(N)]
    for i, p in enumerate(paths):
        p.write_bytes(bytes([i] * (i + 1)))
    return [str(p) for p in paths]


def numbers(batch):
    return [int(np.asarray(t)[0]) for t in (batch.tensors if isinstance(batch, ndd.Batch) else [batch])]


def read(reader, n, epochs=1):
    return [numbers(data) for _ in range(epochs) for data, label in reader.next_epoch(n)]


@pytest.mark.parametrize(
    "settings", [{}, {"random_shuffle": True, "seed": 3, "initial_fill": 4}, {"pad_last_batch": True}]
)
def test_the_order_is_that_of_pipelines(files, settings):
    @pipeline_def(batch_size=3, seed=1)
    def pipe():
        return fn.readers.file(files=files, **settings)

    p = pipe()
    want = [[int(t[0]) for t in map(np.asarray, p.run()[0])] for _ in range(9)]
    assert read(ndd.readers.File(files=files, **settings), 3, 3) == want
    assert sum(read(ndd.readers.File(files=files, seed=3), None), []) == list(range(N))


def test_outputs_know_where_they_come_from(files):
    data, label = next(iter(ndd.readers.File(files=files).next_epoch(2)))
    assert (data.batch_size, label.shape, label.dtype, data.shape) == (2, [(1,)] * 2, ndd.int32, [(1,), (2,)])
    sources = ndd.get_property(data, key="source_info")
    assert [bytes(np.asarray(t)).decode() for t in sources.tensors] == files[:2]
    tensor, _ = next(iter(ndd.readers.File(files=files).next_epoch()))
    assert isinstance(tensor, ndd.Tensor) and tensor.shape == (1,)


def test_a_reader_is_used_in_one_way(files):
    reader = ndd.readers.File(files=files)
    next(reader.next_epoch(2))
    for other in (lambda: reader.next_epoch(), lambda: reader(), lambda: reader(batch_size=2)):
        with pytest.raises(RuntimeError, match="gives batches already"):
            other()
    reader = ndd.readers.File(2, files=files)
    assert [numbers(reader()[0]) for _ in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 0]]
    assert numbers(reader(batch_size=3)[0]) == [1, 2, 3]  # data that was read ahead is read again
    assert numbers(reader(batch_size=1)[0]) == [4]


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda f: ndd.readers.File(file_rot="x"), TypeError, "Did you mean 'file_root'"),
        (lambda f: ndd.readers.File(), ValueError, "'files' or 'file_list' is needed"),
        (lambda f: ndd.readers.File(files=f, num_inputs=1), ValueError, "no inputs"),
        (lambda f: ndd.readers.File(0, files=f), ValueError, "at least 1"),
        (lambda f: ndd.readers.File(files=f).next_epoch(0), ValueError, "at least 1"),
        (lambda f: ndd.readers.File(files=f).next_epoch("2"), TypeError, "integer"),
        (lambda f: ndd.readers.File(files=f, device="tpu"), ValueError, "tpu"),
        (lambda f: ndd.readers.File(file_root="/nonexistent").get_metadata(), RuntimeError, "(?s)here.*nonexist"),
        (lambda f: next(ndd.readers.File(files=f, num_shards=99).next_epoch(2)), ValueError, "num_shards=99"),
        (lambda f: ndd.readers.File(files=f).set_state("x"), ValueError, "'x' is not a state"),
        (lambda f: ndd.readers.Sequences, AttributeError, "Sequences"),
    ],
)  # fmt: skip
def test_what_is_refused(files, use, error, text):
    with pytest.raises(error, match=text):
        use(files)


def test_a_bad_file_is_told_and_the_reader_goes_on(files):
    os.remove(files[3])
    reader = ndd.readers.File(files=files)
    steps = reader.next_epoch(2)
    assert numbers(next(steps)[0]) == [0, 1]
    with pytest.raises(PipelineError, match=rf"(?s)readers.File`.*test_a_bad_file.*{files[3]}"):
        next(steps)
    assert numbers(next(reader.next_epoch(2))[0]) == [4, 5]


@pytest.mark.parametrize("batch_size", [2, 3, None])
@pytest.mark.parametrize("settings", [{}, {"random_shuffle": True}, {"shard_id": 1, "num_shards": 2}])
def test_resuming_at_every_step(files, settings, batch_size):
    reader = ndd.readers.File(files=files, **settings)
    states, rest = [], []
    for _ in range(2):
        for data, _ in reader.next_epoch(batch_size):
            rest.append(numbers(data))
            states.append(reader.get_state())
    rest += read(reader, batch_size)
    for i, state in enumerate(states):
        other = ndd.readers.File(files=files, **settings)
        other.set_state(str(state))
        got = read(other, batch_size, 2)
        expected = rest[i + 1 :]
        assert got[: len(expected)] == expected[: len(got)]
    with pytest.raises(RuntimeError, match="before the reader is used"):
        reader.set_state(states[0])


def test_external_sources():
    data = [np.float32([1, 2]), np.float32([3, 4])]
    source = ndd.ExternalSource(data)
    assert [source().torch().tolist() for _ in range(2)] == [[1, 2], [3, 4]]
    for _ in range(2):
        with pytest.raises(StopIteration):
            source()
    source = ndd.ExternalSource(data, cycle="raise")
    for _ in range(2):
        assert [source().torch().tolist() for _ in range(2)] == [[1, 2], [3, 4]]
        with pytest.raises(StopIteration):
            source()

    def generator():
        yield from data

    source = ndd.ExternalSource(generator, cycle="quiet", layout="X", dtype=ndd.int32)
    assert [source().torch().tolist() for _ in range(3)] == [[1, 2], [3, 4], [1, 2]]
    assert source(batch_size=2).shape == [(2,), (2,)] and source().layout == "X"
    source = ndd.ExternalSource(lambda: (data[0], ndd.as_tensor(data[1])), num_outputs=2, layout=["X", "Y"])
    a, b = source()
    assert (a.layout, b.layout) == ("X", "Y")
    assert [b.batch_size for b in ndd.ExternalSource([ndd.as_batch(data)] * 3).captured(2)] == [2, 2, 2]
    batches = ndd.ExternalSource(lambda: ndd.as_batch(data))
    assert batches().batch_size == batches(batch_size=2).batch_size == 2
    for use, error, text in (
        (lambda: batches(batch_size=3), ValueError, "batches of 3 samples were asked for; the source gave 2"),
        (lambda: ndd.ExternalSource(5), TypeError, "got int"),
        (lambda: ndd.ExternalSource(data, cycle="slow"), ValueError, "'slow'"),
        (lambda: ndd.ExternalSource(lambda: 1, cycle=True), ValueError, "is a function"),
        (lambda: ndd.ExternalSource(data, num_outputs=3)(), ValueError, "got ndarray"),
        (lambda: ndd.ExternalSource(data, num_outputs=2, layout=["X"]), ValueError, "1 are given for 2"),
        (lambda: ndd.ExternalSource(lambda: (1, ndd.as_batch(data)), num_outputs=2)(), ValueError, "and tensors"),
        (lambda: ndd.ExternalSource([], cycle=True)(), StopIteration, None),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            use()


# Random numbers -------------------------------------------------------------------------------------------------------


def test_generators_are_philox():
    """First words for keys 1 and 7, from the paper's reference implementation."""
    rng = ndd.random.RNG(1)
    assert rng() == 3823634032 and ndd.random.RNG(7)() == 4099963437
    text = str(rng.state)
    assert text == "Philox_0000000000000001_0000000000000000:0000000000000000_1"
    clone, follow = rng.clone(), [rng() for _ in range(9)]
    assert [clone() for _ in range(9)] == follow
    rng.set_state(text)
    rng.advance(8)
    assert rng() == follow[8]
    assert repr(ndd.random.RNG(state=text)) == f"RNG(state='{text}')"
    for wrong, error in (("Philox_1", ValueError), ("Mersenne_1_2:3_0", ValueError), (3, TypeError)):
        with pytest.raises(error):
            rng.set_state(wrong)
    for make, error in (
        (lambda: ndd.random.RNG("a"), TypeError),
        (lambda: ndd.random.RNG(1, state=text), ValueError),
        (lambda: ndd.random.set_seed(1.5), TypeError),
        (lambda: rng.advance(-1), ValueError),
        (lambda: rng.seed, AttributeError),
        (lambda: ndd.random.uniform(rng=5), ValueError),
        (lambda: ndd.random.uniform(seed=5), TypeError),
        (lambda: ndd.resize(np.zeros((2, 2, 1), "u1"), size=1, rng=rng), TypeError),
    ):
        with pytest.raises(error):
            make()


def test_random_calls_draw_from_their_generator():
    def draw(rng=None):
        x = ndd.random.uniform(batch_size=3, shape=[4], rng=rng)
        y = ndd.noise.gaussian(np.full((8, 8, 1), 99, "u1"), stddev=20.0, rng=rng)
        z = ndd.random_resized_crop(IMAGE, size=4, rng=rng)
        return [v.torch() for v in (x, y, z)]

    first, second = draw(ndd.random.RNG(3)), draw(ndd.random.RNG(3))
    other = draw(ndd.random.RNG(4))
    assert all(a.equal(b) for a, b in zip(first, second)) and not any(a.equal(b) for a, b in zip(first, other))
    ndd.random.set_seed(9)
    a, b = draw(), draw()
    ndd.random.set_seed(9)
    assert all(x.equal(y) for x, y in zip(draw(), a)) and not any(x.equal(y) for x, y in zip(a, b))
    assert ndd.random.get_default_rng() is ndd.random.get_default_rng()


IMAGE = np.random.default_rng(0).integers(0, 255, (20, 20, 3), "u1")


def test_distributions():
    stats = pytest.importorskip("scipy.stats")
    rng = ndd.random.RNG(0)
    x = np.asarray(ndd.random.uniform(range=[2.0, 5.0], shape=[20000], rng=rng))
    assert stats.kstest(x, stats.uniform(2, 3).cdf).pvalue > 1e-3
    each = [ndd.random.normal(rng=rng).item() for _ in range(500)]  # independent from call to call
    assert stats.kstest(each, stats.norm.cdf).pvalue > 1e-3
    coins = np.asarray(ndd.random.coin_flip(batch_size=5000, probability=0.3, rng=rng))
    assert abs(coins.mean() - 0.3) < 0.03
    assert sorted(np.asarray(ndd.batch_permutation(batch_size=9, rng=rng)).tolist()) == list(range(9))


# Checkpoints ----------------------------------------------------------------------------------------------------------


def test_checkpoints(files, tmp_path):
    path = str(tmp_path / "run_{seq:03d}.json")

    def program(load):
        checkpoint = ndd.EvalContext().checkpoint
        if load:
            assert checkpoint.load(path) == str(tmp_path / "run_001.json") and checkpoint.is_loaded
        reader, rng = ndd.readers.File(files=files, random_shuffle=True), ndd.random.RNG()
        checkpoint.register(reader, "reader")
        checkpoint.register(rng, "rng")
        return checkpoint, reader, rng

    checkpoint, reader, rng = program(False)
    assert checkpoint.names == ("reader", "rng") and len(checkpoint) == 2 and not checkpoint.is_complete
    steps = reader.next_epoch(2)
    for _ in range(2):
        next(steps), ndd.random.uniform(rng=rng).evaluate()
        checkpoint.collect()
        checkpoint.save(path)
    assert checkpoint.is_complete and sorted(os.listdir(tmp_path))[-2:] == ["run_000.json", "run_001.json"]
    _, other, other_rng = program(True)
    assert numbers(next(other.next_epoch(2))[0]) == numbers(next(steps)[0])
    assert ndd.random.uniform(rng=rng).item() == ndd.random.uniform(rng=other_rng).item()
    plain = str(tmp_path / "plain.json")
    assert checkpoint.save(plain) == plain and json.loads(Path(plain).read_text())["version"] == 2


def test_what_checkpoints_refuse(tmp_path):
    rng = ndd.random.RNG(1)
    c = ndd.checkpoint.Checkpoint()
    with pytest.raises(RuntimeError, match="empty"):
        c.serialize()
    for wrong in ("{}", '{"version": 9, "states": {}}', '{"version": 2, "states": {"a": 3}}', "no"):
        with pytest.raises(ValueError):
            c.deserialize(wrong)
    with pytest.raises(TypeError, match="int has no state"):
        c.register(3)
    with pytest.raises(ValueError, match="__op_"):
        c.register(rng, "__op_7")
    with pytest.raises(FileNotFoundError):
        c.load(str(tmp_path / "x_{seq}.json"))
    assert c.register(rng) == c.register(rng) == "__op_0" and c.get_state("__op_0") is None
    c.collect()
    with pytest.raises(KeyError, match="'b'"):
        c.set_state("b", "x")
    other = ndd.checkpoint.Checkpoint()
    other.deserialize(c.serialize())
    with pytest.raises(RuntimeError, match="not registered"):
        other.restore()
    with pytest.raises(KeyError, match="no state for 'else'"):
        other.register(ndd.random.RNG(), "else")
    other.set_state("__op_0", rng.state, op_type=ndd.readers.File)
    with pytest.raises(TypeError, match="is that of a File, the object is a RNG"):
        other.register(ndd.random.RNG())
    assert ndd.checkpoint.current() is ndd.EvalContext.current().checkpoint


# torchdata ------------------------------------------------------------------------------------------------------------


def test_nodes(files):
    tn = pytest.importorskip("torchdata.nodes")
    from penstock.experimental.dynamic.pytorch import nodes

    def graph():
        reader = nodes.Reader(ndd.readers.File, batch_size=2, files=files)
        return nodes.ToTorch(nodes.DictMapper(reader, lambda x: x.slice[0] + 10))

    node = graph()
    node.reset()
    assert [data.tolist() for data, _ in node] == [[10, 11], [12, 13], [14, 15], [16, 10]]
    loader = tn.Loader(graph())
    for _ in range(2):
        assert len(list(loader)) == 4
    node = graph()
    node.reset()
    first = next(node)[1].tolist()
    state = node.state_dict()
    rest = [label.tolist() for _, label in node]
    other = graph()
    other.reset(json.loads(json.dumps(state)))
    assert [label.tolist() for _, label in other] == rest and len(rest) == 3 and first == [[0], [1]]
    samples = nodes.Reader(ndd.readers.File, batch_size=None, files=files, output_names=["a", "b"])
    samples.reset()
    assert isinstance(next(samples)["a"], ndd.Tensor) and samples.get_metadata()["epoch_size"] == N
    for use, error in (
        (lambda: nodes.Reader(5, batch_size=2), TypeError),
        (lambda: nodes.Reader(ndd.readers.File, batch_size=2, files=files, output_names=["a"]), ValueError),
        (lambda: nodes.DictMapper(samples, 3), TypeError),
        (lambda: next(_reset(nodes.DictMapper(samples, len, key="c"))), KeyError),
    ):
        with pytest.raises(error):
            use()


def _reset(node):
    node.reset()
    return node


def test_imread(tmp_path):
    path = tmp_path / "ä.ppm"
    path.write_bytes(b"P6 2 1 255 " + bytes(range(6)))
    want = np.arange(6, dtype="u1").reshape(1, 2, 3)
    np.testing.assert_array_equal(np.asarray(ndd.imread(path)), want)
    assert ndd.imread([str(path)] * 2).shape == [(1, 2, 3)] * 2
    assert ndd.imread(ndd.as_tensor(os.fsencode(path))).layout == "HWC"
    for wrong, error in ((3, TypeError), ("", ValueError), (str(tmp_path / "no.jpg"), RuntimeError)):
        with pytest.raises(error):
            ndd.imread(wrong).evaluate()


def test_features_have_their_names_in_nodes(tmp_path):
    pytest.importorskip("torchdata.nodes")
    from penstock.experimental.dynamic.pytorch import nodes

    path = records.write(tmp_path / "records", [records.example({"a": records.integers(i)}) for i in range(4)])
    how = dict(path=path, features={"a": tfrecord.FixedLenFeature([1], tfrecord.int64, 0)})
    for names, key in ((None, "a"), (["other"], "other")):
        node = nodes.Reader(ndd.readers.TFRecord, batch_size=2, output_names=names, **how)
        node.reset()
        assert [np.asarray(ndd.as_tensor(d[key])).ravel().tolist() for d in node] == [[0, 1], [2, 3]]
