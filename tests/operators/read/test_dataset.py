# SPDX-License-Identifier: Apache-2.0
"""readers.dataset: samples of arrays and of the user's own objects, in the order of all readers."""

import os
import pickle
import time

import numpy as np
import pytest

from penstock import Pipeline, PipelineError, fn, pipeline_def
from penstock.core.sample_info import SampleInfo
from penstock.operators.read._columns import Columns

N = 21
RNG = np.random.default_rng(5)
IMAGES = RNG.integers(0, 256, (N, 5, 7, 3), np.uint8)


class Squares:
    """A data set as PyTorch defines them; sample 5 is bad."""

    def __init__(self, n=N, bad=None):
        self.n, self.bad = n, bad

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == 5 and self.bad is not None:
            return self.bad()
        return np.full((2, i % 3 + 1), i * i, np.float32), i


def build(source, batch_size=4, pipeline=None, **reader):
    @pipeline_def(batch_size=batch_size, num_threads=2, **{"seed": 7, **(pipeline or {})})
    def pipe():
        outputs = fn.readers.dataset(source, name="reader", **reader)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipe()


def samples(outputs):
    """The samples of a batch, as tuples of arrays."""
    return list(zip(*([np.array(x.at(i)) for i in range(len(x))] for x in outputs)))


def epoch(source, batch_size=1, **kwargs):
    pipe = build(source, batch_size, **kwargs)
    return [s for _ in range(pipe.epoch_size("reader") // batch_size) for s in samples(pipe.run())]


def numbers(pipe, n_batches):
    return [np.array(pipe.run()[-1].as_tensor()).ravel().tolist() for _ in range(n_batches)]


def mapped(array, folder):
    np.save(folder / "a.npy", array)
    return np.load(folder / "a.npy", mmap_mode="r")


def as_torch(array, folder):
    return pytest.importorskip("torch").from_numpy(array)


ARRAYS = {
    "in memory": lambda a, folder: a,
    "mapped": mapped,
    "backwards": lambda a, folder: a[::-1],
    "every other row": lambda a, folder: a[::2],
    "every other column": lambda a, folder: a[:, ::2],
    "Fortran's order": lambda a, folder: np.asfortranarray(a),
    "read-only": lambda a, folder: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "unaligned": lambda a, folder: np.frombuffer(b"\0" + a.tobytes(), "u1")[1:].view(a.dtype).reshape(a.shape),
    "a list": lambda a, folder: list(a),
    "of PyTorch": as_torch,
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f2", "?"])
@pytest.mark.parametrize("shape", [(), (3,), (4, 6, 3)], ids=str)
def test_arrays(kind, dtype, shape, tmp_path):
    if kind == "every other column" and not shape:
        pytest.skip("there are no columns")
    given = ARRAYS[kind](RNG.integers(0, 2, (N, *shape)).astype(dtype), tmp_path)
    got = epoch(given)
    assert len(got) == len(given)
    for (sample,), wanted in zip(got, given):
        wanted = np.asarray(wanted)
        assert sample.dtype == wanted.dtype and sample.shape == wanted.shape and (sample == wanted).all()


def test_the_other_byte_order():
    given = np.arange(N, dtype=">f4")
    assert [x.item() for (x,) in epoch(given)] == list(range(N))


def test_text_and_bytes():
    captions = ["", "grüße", "snow 雪", *map(str, range(5))]
    encoded = [b"", b"\0\xff", *(bytes([k]) * k for k in range(6))]
    got = epoch((captions, encoded, np.array(captions)))
    assert [bytes(a).decode() for a, _, _ in got] == captions
    assert [bytes(b) for _, b, _ in got] == encoded
    assert [bytes(c).decode() for _, _, c in got] == captions


def test_pictures_of_pillow():
    image = pytest.importorskip("PIL.Image")
    got = epoch([image.fromarray(x) for x in IMAGES], layout="HWC")
    assert all((x == y).all() for (x,), y in zip(got, IMAGES))


def test_a_tuple_has_an_output_for_each_and_layouts():
    pipe = build((IMAGES, np.arange(N), Squares()), layout=["HWC", ""], num_outputs=3)
    with pytest.raises(TypeError, match="reader"):
        build((IMAGES, Squares()), typo=1)
    pipe = build((IMAGES, np.arange(N)), layout=["HWC", ""])
    images, labels = pipe.run()
    assert images.layout() == "HWC" and labels.layout() == ""
    assert (images.as_array() == IMAGES[:4]).all() and labels.as_array().tolist() == [0, 1, 2, 3]


def test_samples_of_several_items():
    got = epoch(Squares(), num_outputs=2)
    assert all(x.shape == (2, i % 3 + 1) and (x == i * i).all() and n == i for i, (x, n) in enumerate(got))


def test_each_epoch_is_another_permutation():
    pipe = build((IMAGES, np.arange(N)), batch_size=3, shuffle="global")
    first, second = (sum(numbers(pipe, 7), []) for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(N)) and first != second and first != list(range(N))


@pytest.mark.parametrize("n_shards", [2, 3])
def test_shards_share_an_epoch(n_shards):
    shards = [
        build(Squares(), batch_size=1, num_outputs=2, shuffle="global", num_shards=n_shards, shard_id=k, seed=1)
        for k in range(n_shards)
    ]
    per_shard = [(k + 1) * N // n_shards - k * N // n_shards for k in range(n_shards)]
    seen = [i for shard, n in zip(shards, per_shard) for (i,) in numbers(shard, n)]
    assert sorted(seen) == list(range(N))


def test_weights_draw_only_what_has_one():
    weights = np.zeros(N)
    weights[[2, 9]] = 1, 3
    drawn = sum(numbers(build(np.arange(N), batch_size=100, weights=weights, num_samples=1000), 10), [])
    assert set(drawn) == {2, 9} and 650 < drawn.count(9) < 850  # 750 +- 7 standard deviations


def test_it_can_be_mixed():
    @pipeline_def(batch_size=8, num_threads=2, seed=1)
    def pipe():
        return fn.mix(fn.readers.dataset(np.arange(50)), fn.readers.dataset([np.int64(-1)] * 50), weights=[3, 1])

    assert (pipe().run()[0].as_array() == -1).sum() == 2


def test_batches_of_similar_length():
    texts = ["x" * n for n in range(1, 13)]
    pipe = build(texts, batch_size=3, batch_by_length=[len(t) for t in texts], shuffle="global")
    lengths = [[x.size for (x,) in samples(pipe.run())] for _ in range(4)]
    assert sorted(sum(lengths, [])) == list(range(1, 13)) and all(max(n) - min(n) == 2 for n in lengths)


@pytest.mark.parametrize("then", [1, 3])
def test_checkpoints_continue_in_the_epoch(then):
    reader = {"num_outputs": 2, "shuffle": "global", "seed": 3}
    first = build(Squares(), pipeline={"enable_checkpointing": True}, **reader)
    seen = sum(numbers(first, 2), [])
    saved = first.checkpoint()
    rest = []
    for k in range(then):
        shard = build(Squares(), 1, {"checkpoint": saved, "seed": 7}, num_shards=then, shard_id=k, **reader)
        left = N - len(seen)
        rest += sum(numbers(shard, left // then + (k < left % then)), [])
    assert sorted(seen + rest) == list(range(N))


def test_a_checkpoint_of_other_arrays():
    saved = build(IMAGES, pipeline={"enable_checkpointing": True}).checkpoint()
    with pytest.raises((ValueError, RuntimeError), match="fingerprint|checkpoint"):
        build(IMAGES.astype("f4"), pipeline={"checkpoint": saved}).run()


WORKERS = {
    "threads": {"py_start_method": "thread", "py_num_workers": 3},
    "fork": {"py_start_method": "fork", "py_num_workers": 2},
    "spawn": {"py_start_method": "spawn", "py_num_workers": 2},
}


@pytest.mark.parametrize("method", WORKERS)
def test_workers_change_nothing(method):
    reader = {"num_outputs": 2, "shuffle": "global", "batch_size": 5}
    alone = build(Squares(), **reader)
    shared = build(Squares(), parallel=True, pipeline=WORKERS[method], **reader)
    for _ in range(9):
        one, other = samples(alone.run()), samples(shared.run())
        assert all((a == b).all() for x, y in zip(one, other) for a, b in zip(x, y))
    shared.close()


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a[2:], np.asfortranarray], ids=["whole", "part", "Fortran's"])
def test_mapped_files_are_mapped_again_in_other_processes(make, tmp_path):
    np.save(tmp_path / "a.npy", make(RNG.integers(0, 9, (N, 3000), np.int64)))
    given = np.load(tmp_path / "a.npy", mmap_mode="r")
    sent = pickle.dumps(Columns((given, list(range(len(given)))), None))
    again = pickle.loads(sent)
    assert len(sent) < 2000 and len(again) == len(given)
    part = pickle.loads(pickle.dumps(Columns(given[1:], None)))
    rows = np.array([1, 3])
    if 0 in again._arrays:
        assert (again.rows(0, rows).array() == given[rows]).all()
        assert (part.rows(0, rows).array() == given[1:][rows]).all()


def test_workers_get_only_what_they_call():
    called = Columns((np.zeros((N, 5000)), Squares()), None).to_call()
    assert len(pickle.dumps(called)) < 2000 and len(called) == N
    (sample,) = called(SampleInfo(4, 0, 0, 0))
    assert sample[1] == 4


def test_other_processes_make_batches_of_mapped_files(tmp_path):
    np.save(tmp_path / "a.npy", IMAGES)
    given = np.load(tmp_path / "a.npy", mmap_mode="r")
    alone, shared = (build(given, shuffle="global", pipeline=w) for w in ({}, {"workers": 2}))
    for _ in range(7):
        assert (alone.run()[0].as_array() == shared.run()[0].as_array()).all()
    shared.close()


def test_large_batches_fit_into_the_messages_to_workers():
    given = {"shuffle": "global", "parallel": True, "pipeline": {"py_num_workers": 1}}
    pipe = build(range(10**6), batch_size=40_000, **given)
    assert len(set(numbers(pipe, 1)[0])) == 40_000
    pipe.close()


@pytest.mark.parametrize("method", WORKERS)
def test_samples_of_a_batch_that_differ_in_type(method):
    pipe = build([1, 2, 3, 4.0], parallel=True, pipeline=WORKERS[method])
    with pytest.raises(PipelineError, match="need the same number of dimensions and the same type"):
        pipe.run()
    pipe.close()


def raises():
    return {}["such a key"]


@pytest.mark.parametrize("method", ["", *WORKERS])
def test_bad_samples(method):
    workers = WORKERS[method] if method else {}
    given = {"num_outputs": 2, "parallel": bool(method)}
    pipe = build(Squares(bad=raises), pipeline=workers, **given)
    assert numbers(pipe, 1) == [[0, 1, 2, 3]]
    with pytest.raises(PipelineError, match=r"KeyError: 'such a key' \(test_dataset.py, line \d+, in __getitem__\)"):
        pipe.run()
    assert numbers(pipe, 1) == [[8, 9, 10, 11]]
    skipping = build(Squares(bad=raises), pipeline={**workers, "on_error": "skip"}, **given)
    assert numbers(skipping, 3) == [[0, 1, 2, 3], [4, 6, 7], [8, 9, 10, 11]]
    assert skipping.errors()[0].source == "Squares, sample 5"
    replacing = build(Squares(bad=raises), pipeline={**workers, "on_error": "replace"}, **given)
    assert numbers(replacing, 2)[1] == [4, 6, 6, 7]
    for p in (pipe, skipping, replacing):
        p.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_that_dies_loses_one_sample(method):
    def dies():
        os._exit(3)

    pipe = build(Squares(bad=dies), num_outputs=2, parallel=True, pipeline={**WORKERS[method], "on_error": "skip"})
    assert numbers(pipe, 3) == [[0, 1, 2, 3], [4, 6, 7], [8, 9, 10, 11]]
    assert "ended with exit code 3 while it made sample 5 of Squares" in pipe.errors()[0].reason
    pipe.close()


@pytest.mark.parametrize("method", ["threads", "fork"])
def test_a_sample_that_takes_too_long(method):
    def sleeps():
        time.sleep(60)

    workers = {**WORKERS[method], "on_error": "skip"}
    pipe = build(Squares(bad=sleeps), num_outputs=2, parallel=True, timeout=1.0, pipeline=workers)
    assert numbers(pipe, 2)[1] == [4, 6, 7]
    assert "took longer than timeout=1 s while it made sample 5 of Squares" in pipe.errors()[0].reason
    pipe.close()


BAD = {
    "too few items": (lambda: (np.zeros((1, 1), np.float32),), r"gave a tuple of 1; num_outputs=2 needs a tuple"),
    "no tuple": (lambda: np.zeros(2), r"gave a ndarray; num_outputs=2 needs a tuple"),
    "None": (lambda: (None, 5), "gave None"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_sample(what):
    given, error = BAD[what]
    with pytest.raises(PipelineError, match=error):
        build(Squares(bad=given), batch_size=7, num_outputs=2).run()


def test_types_that_change():
    changed = "Type of the samples of the data set has changed .* output 0 had 0 dimensions of int32"
    with pytest.raises(PipelineError, match=changed):
        numbers(build([1, 2, 3.5, 4.5], batch_size=2), 2)


@pytest.mark.parametrize("side", [4, 64])  # small samples are copied, others read where they are
def test_the_users_memory_is_left_alone(side):
    images = RNG.integers(0, 256, (N, side, side, 3), np.uint8)
    before = images.copy()

    @pipeline_def(batch_size=N, num_threads=2)
    def pipe():
        x = fn.readers.dataset(images, layout="HWC")
        return x, fn.brightness(x, brightness=0.5), fn.flip(x), x + 1, fn.erase(x, anchor=[0, 0], shape=[2, 2])

    outputs = pipe().run()
    batch = outputs[0].as_array()
    assert (batch == before).all()
    for array in (batch, outputs[0].at(0), build(images, shuffle="global").run()[0].as_array()):
        assert not (array.flags.writeable and np.shares_memory(array, images))
    assert (outputs[2].as_array() == before[:, :, ::-1]).all() and (images == before).all()


def test_tensors_of_pytorch_never_share_the_users_memory():
    torch = pytest.importorskip("torch")
    images = RNG.integers(0, 256, (N, 64, 64, 3), np.uint8)
    from penstock.plugin.pytorch import DALIGenericIterator

    for (batch,) in DALIGenericIterator(build((images,)), ["x"], reader_name="reader"):
        assert (batch["x"] == torch.from_numpy(images[:4])).all()
        batch["x"].zero_()
        break
    assert images[:4].any(axis=(1, 2, 3)).all()


def test_iterators_know_its_epochs():
    pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    pipe = build((IMAGES, np.arange(N)), shuffle="global", pad_last_batch=True)
    loader = DALIGenericIterator(
        pipe, ["x", "y"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )
    assert len(loader) == 6
    for _ in range(2):
        assert sorted(i for (batch,) in loader for i in batch["y"].tolist()) == list(range(N))


def test_a_serialised_pipeline_names_the_data_set():
    source = np.arange(N)
    text = build(source).serialize().decode()
    assert len(text) < 3000
    (name,) = [n for n in text.split('"') if n.endswith("Columns")]
    again = Pipeline.deserialize(text, functions={name: source})
    assert numbers(again, 1) == [[0, 1, 2, 3]]


WRONG = {
    "a number": (5, {}, r"'source' takes an object with len\(\) and \[i\], or a tuple of them; got int"),
    "a function": (lambda: 0, {}, "got function; pass what is called or only iterated to fn.external_source"),
    "a dictionary": ({"a": IMAGES}, {}, "got dict; pass a tuple of its values"),
    "nothing": ((), {}, "'source' is an empty tuple"),
    "other lengths": ((IMAGES, [1, 2]), {}, r"have \[21, 2\] samples; all need the same number"),
    "other outputs": (
        (IMAGES, IMAGES),
        {"num_outputs": 3},
        "num_outputs=3 is not possible; a tuple of 2 data sets has",
    ),
    "no outputs": (IMAGES, {"num_outputs": 0}, "num_outputs=0 is not possible; at least 1"),
    "timeout": (IMAGES, {"timeout": 5.0}, "timeout takes a positive number of seconds, with parallel=True; got"),
    "shards": (IMAGES, {"num_shards": 22}, "there are 21 samples, fewer than num_shards=22"),
    "windows": (IMAGES, {"shuffle": "windows"}, "use shuffle='global'"),
    "no samples": ([], {}, "there are no samples"),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_of_arguments(what):
    source, kwargs, error = WRONG[what]
    with pytest.raises((TypeError, ValueError), match=error):
        build(source, **kwargs).build()


def test_tables_have_a_reader_of_their_own():
    frame = type("DataFrame", (dict,), {})(a=type("Series", (list,), {})([1, 2]))
    with pytest.raises(TypeError, match=r"DataFrame is not indexed by the number .*\(df\['a'\].to_numpy\(\)"):
        build(frame)
    with pytest.raises(TypeError, match=r"pass series.to_numpy\(\)"):
        build(frame["a"])
