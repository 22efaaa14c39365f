# SPDX-License-Identifier: Apache-2.0
"""The iterators for PyTorch: outputs without a copy, and errors."""

import gc
import itertools
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mistakes import MISTAKES  # noqa: E402

from penstock import PipelineError, fn, ops, pipeline_def  # noqa: E402
from penstock.core.kernels import library  # noqa: E402
from penstock.pipeline import Pipeline  # noqa: E402
from penstock.plugin.pytorch import (  # noqa: E402
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
)


def labels(it):
    return [[part["label"].flatten().tolist() for part in batch] for batch in it]


def test_a_list_of_dictionaries(make):
    it = DALIGenericIterator(make.reader(), ["data", "label"], reader_name="reader")
    batch = next(it)
    assert isinstance(batch, list) and len(batch) == 1 and list(batch[0]) == ["data", "label"]
    assert batch[0]["data"].shape == (2, 8) and batch[0]["data"].dtype is torch.uint8
    assert batch[0]["label"].shape == (2, 1) and batch[0]["label"].dtype is torch.int32
    assert [len(it), it.size, it.batch_size] == [4, 8, 2]


def test_classification(make):
    it = DALIClassificationIterator(make.reader(), reader_name="reader", last_batch_policy="partial")
    assert labels(it) == [[[0, 1]], [[2, 3]], [[4, 5]], [[6]]]
    assert list(it.next()[0]) == ["data", "label"] if it.reset() is None else False


def test_several_pipelines(make):
    pipes = [make.reader(shard=s, n_shards=2) for s in range(2)]
    it = DALIGenericIterator(pipes, ["data", "label"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL)
    assert labels(it) == [[[0, 1], [3, 4]], [[2], [5, 6]]]


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "u2", "u4", "u8"])
def test_types(make, dtype):
    x = np.array([[0, 1], [2, 3]]).astype(dtype)
    tensor = next(DALIGenericIterator(make.source(lambda i: x), ["x"]))[0]["x"]
    assert tensor.numpy().dtype == x.dtype and (tensor.numpy() == x).all()


def test_no_copy(make, monkeypatch):
    """The tensor uses the memory in which the pipeline wrote the batch."""
    pipe = make.source(lambda i: np.full((2, 64, 64, 3), i, "u1"), is_copied=True)
    seen = []
    run = Pipeline.run
    monkeypatch.setattr(Pipeline, "run", lambda *a: seen.append(run(*a)) or seen[-1])
    it = DALIGenericIterator(pipe, ["x"], prepare_first_batch=False)
    for _ in range(5):
        tensor = next(it)[0]["x"]
        assert tensor.data_ptr() == seen[-1][0].data_ptr() and tensor.data_ptr() % 64 == 0


def test_tensors_outlive_the_pipeline_and_give_their_memory_back(make):
    gc.collect()
    before = library().memory_used()
    it = DALIGenericIterator(make.source(lambda i: np.full((2, 1000), i, "i4"), is_copied=True), ["x"])
    tensors = [batch[0]["x"] for batch in itertools.islice(it, 8)]
    it._pipes[0].close()
    del it
    gc.collect()
    assert [t[1, 7].item() for t in tensors] == list(range(8))
    block = 8192  # 8000 bytes, rounded up by the pool
    assert library().memory_used() - before == len(tensors) * block
    view = tensors[3][1:, 5:]  # a view keeps it as well
    del tensors
    gc.collect()
    assert library().memory_used() - before == block and view[0, 0] == 3
    del view
    gc.collect()
    assert library().memory_used() == before


def test_writing_to_a_tensor_changes_no_other_batch(make):
    rows = np.zeros((2, 4), "i4")
    it = DALIGenericIterator(make.source(lambda i: rows), ["x"])
    for batch in itertools.islice(it, 6):
        assert (batch[0]["x"] == 0).all()
        batch[0]["x"] += 1
    assert (rows == 0).all()


def test_ragged_batches_are_refused_with_name_and_shapes(make):
    with pytest.raises(ValueError, match=r"output 'x'.*differ in shape.*\(1, 3\), \(2, 3\).*DALIRaggedIterator"):
        DALIGenericIterator(make.ragged(), ["x"])


def test_ragged_lists(make):
    batch = next(DALIRaggedIterator(make.ragged(), ["x"], output_types=[DALIRaggedIterator.SPARSE_LIST_TAG]))
    assert [t.tolist() for t in batch[0]["x"]] == [[[1, 1, 1]], [[2, 2, 2], [2, 2, 2]]]


def test_ragged_coo(make):
    x = next(DALIRaggedIterator(make.ragged(), ["x"], output_types=[DALIRaggedIterator.SPARSE_COO_TAG]))[0]["x"]
    assert x.layout is torch.sparse_coo and x.shape == (2, 2, 3)
    assert x.to_dense().tolist() == [[[1, 1, 1], [0, 0, 0]], [[2, 2, 2], [2, 2, 2]]]


def test_ragged_dense_and_partial(make):
    pipe = make.source(lambda i: np.arange(6, dtype="i4").reshape(3, 2), batch_size=3)
    it = DALIRaggedIterator(pipe, ["x"], size=4, output_types=["sparse_list"], last_batch_policy="PARTIAL")
    assert [len(b[0]["x"]) for b in it] == [3, 1]
    it = DALIRaggedIterator(make.source(lambda i: np.zeros((2, 2), "i4")), ["x"], size=3, last_batch_policy="PARTIAL")
    assert [b[0]["x"].shape[0] for b in it] == [2, 1]


@pytest.mark.parametrize("types", [["dense", "dense"], ["jagged"]])
def test_ragged_tags_are_checked(make, types):
    with pytest.raises(ValueError, match="output_types"):
        DALIRaggedIterator(make.ragged(), ["x"], output_types=types)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("policy", LastBatchPolicy)
def test_reset_in_the_middle_of_an_epoch(make, at, policy):
    """The rest is dropped, and the next epoch is complete. Shards advance as after a complete epoch."""
    it = DALIGenericIterator(make.reader(n=8), ["data", "label"], reader_name="reader", last_batch_policy=policy)
    for _ in range(at):
        next(it)
    it.reset()
    assert labels(it) == [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]
    it.reset()
    assert labels(it) == [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 7]]]


def test_reset_in_the_middle_of_an_epoch_that_was_begun_ahead(make):
    """FILL has already used the first sample of the second epoch. After a reset, the third is complete again."""
    it = DALIGenericIterator(make.reader(n=7), ["data", "label"], reader_name="reader")
    assert len(labels(it)) == 4
    it.reset()
    assert len(it) == 3 and next(it)[0]["label"].flatten().tolist() == [1, 2]
    it.reset()
    assert len(it) == 4 and labels(it) == [[[0, 1]], [[2, 3]], [[4, 5]], [[6, 0]]]


def test_reset_in_the_middle_moves_to_the_next_shard(make):
    it = DALIGenericIterator(make.reader(n=8, n_shards=2), ["data", "label"], reader_name="reader")
    assert next(it)[0]["label"].flatten().tolist() == [0, 1]
    it.reset()
    assert labels(it) == [[[4, 5]], [[6, 7]]]


def test_reset_before_the_first_batch_changes_nothing(make):
    for prepare in (False, True):
        it = DALIGenericIterator(make.reader(n=4), ["data", "label"], reader_name="reader", prepare_first_batch=prepare)
        it.reset()
        it.reset()
        assert labels(it) == [[[0, 1]], [[2, 3]]]


def test_reset_after_the_last_batch_without_seeing_the_end(make):
    it = DALIGenericIterator(make.reader(n=4), ["data", "label"], reader_name="reader")
    for _ in range(2):
        assert [next(it)[0]["label"][0].item() for _ in range(len(it))] == [0, 2]
        it.reset()


def test_iter_after_the_last_batch_begins_the_next_epoch(make):
    """As in loops that count up to len()."""
    it = DALIGenericIterator(make.reader(n=4), ["data", "label"], reader_name="reader")
    for _ in range(3):
        batches = iter(it)
        assert [next(batches)[0]["label"][0].item() for _ in range(len(it))] == [0, 2]


def test_the_end_stays_the_end_until_reset(make):
    it = DALIGenericIterator(make.reader(n=4), ["data", "label"], reader_name="reader")
    assert len(labels(it)) == 2
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(it)
    assert len(labels(it)) == 2  # iter() begins the next epoch


def test_auto_reset_raise_needs_reset(make):
    it = DALIGenericIterator(make.reader(n=4), ["data", "label"], reader_name="reader", auto_reset="raise")
    assert len(labels(it)) == 2
    assert labels(it) == []
    it.reset()
    assert len(labels(it)) == 2


def test_auto_reset_begins_the_next_epoch_by_itself(make):
    it = DALIGenericIterator(make.reader(n=4), ["data", "label"], reader_name="reader", auto_reset="yes")
    given = []
    for _ in range(3):
        for _ in range(2):
            given.append(next(it)[0]["label"][0].item())
        with pytest.raises(StopIteration):
            next(it)
    assert given == [0, 2] * 3


def test_a_source_shorter_than_size_starts_again(make):
    pipe = make.source([np.full((2, 1), i, "i4") for i in range(3)], cycle="raise")
    it = DALIGenericIterator(pipe, ["label"], size=8)
    assert [[b[0]["label"][0].item() for b in it] for _ in range(3)] == [[0, 1, 2]] * 3


def test_a_source_without_data(make):
    def nothing(iteration):
        raise StopIteration

    with pytest.raises(RuntimeError, match="no data"):
        DALIGenericIterator(make.source(nothing), ["x"])


def test_no_length_without_size(make):
    """It is 0, as in DALI."""
    it = DALIGenericIterator(make.source([np.zeros((2, 1), "f4")] * 3), ["x"])
    assert len(it) == 0 and not it and "unknown length" in repr(it)
    assert it.size == -1 and len(list(it)) == 3


def test_batches_of_varying_size(make):
    pipe = make.source([np.zeros((n, 1), "f4") for n in (2, 1, 2, 1)])
    assert [b[0]["x"].shape[0] for b in DALIGenericIterator(pipe, ["x"])] == [2, 1, 2, 1]


def _failing(files, bad, n=10, batch_size=4, **kwargs):
    """Labels of a reader. The files in `bad` are unreadable."""
    missing = [f if i not in bad else f + ".missing" for i, f in enumerate(files[:n])]

    @pipeline_def(batch_size=batch_size, num_threads=1, **kwargs)
    def pipe():
        return fn.readers.file(files=missing, labels=list(range(n)), name="reader")

    return pipe()


@pytest.mark.parametrize("bad", [{0}, {5}, {8}, {9}, {1, 2, 8}, set(range(4)), set(range(8, 10)), set(range(10))])
@pytest.mark.parametrize("policy", LastBatchPolicy)
def test_batches_shrunk_by_skipped_samples(files, bad, policy):
    """Only skipped samples are missing: PARTIAL still ends at the end of the data set."""
    it = DALIGenericIterator(
        _failing(files, bad, on_error="skip"),
        ["data", "label"],
        reader_name="reader",
        last_batch_policy=policy,
        prepare_first_batch=False,
    )
    order = {"FILL": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1], "DROP": list(range(8)), "PARTIAL": list(range(10))}[
        policy.name
    ]
    chunks = [order[i : i + 4] for i in range(0, len(order), 4)]
    want = [[i for i in c if i not in bad] for c in chunks]
    kept = [i for c in ([0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]) for i in [[x for x in c if x not in bad]]]
    want = [w for w, k in zip(want, kept) if k]  # a batch of which nothing is left is passed over
    assert [b[0]["label"].flatten().tolist() for b in it] == want


def test_an_error_costs_one_batch(files):
    it = DALIGenericIterator(_failing(files, {5}), ["data", "label"], reader_name="reader", last_batch_policy="PARTIAL")
    assert next(it)[0]["label"].flatten().tolist() == [0, 1, 2, 3]
    with pytest.raises(PipelineError, match=r"05\.bin\.missing"):
        next(it)
    assert next(it)[0]["label"].flatten().tolist() == [8, 9]
    with pytest.raises(StopIteration):
        next(it)


def test_an_error_in_one_of_several_pipelines_keeps_them_together(make, files):
    pipes = [make.reader(n=10, batch_size=4), _failing(files, {5})]
    it = DALIGenericIterator(pipes, ["data", "label"], size=24)
    next(it)
    with pytest.raises(PipelineError):
        next(it)
    assert [p["label"].flatten().tolist() for p in next(it)] == [[8, 9, 0, 1]] * 2


@pytest.mark.parametrize(("kwargs", "error", "text"), MISTAKES)
def test_mistakes_are_told_before_the_first_batch(make, kwargs, error, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=text):
            DALIGenericIterator(make.reader(), **{"output_map": ["data", "label"], **kwargs})


def test_mistakes_with_several_pipelines(make):
    with pytest.raises(ValueError, match="empty list"):
        DALIGenericIterator([], ["x"])
    with pytest.raises(TypeError, match="int"):
        DALIGenericIterator([3], ["x"])
    with pytest.raises(ValueError, match="same batch size"):
        DALIGenericIterator([make.reader(), make.reader(batch_size=3)], ["data", "label"], size=8)
    with pytest.raises(ValueError, match="epoch_size differs"):
        DALIGenericIterator([make.reader(), make.reader(n=8)], ["data", "label"], reader_name="reader")
    with pytest.raises(ValueError, match="several pipelines need a reader_name or a size"):
        DALIGenericIterator([make.reader(), make.reader()], ["data", "label"])


def test_fill_last_batch_is_deprecated(make):
    for fill, sizes in ((True, [2, 2, 2, 2]), (False, [2, 2, 2, 1])):
        with pytest.warns(DeprecationWarning, match="last_batch_policy"):
            it = DALIGenericIterator(make.reader(), ["data", "label"], reader_name="reader", fill_last_batch=fill)
        assert [b[0]["label"].shape[0] for b in it] == sizes


def test_repr_tells_something(make):
    it = DALIGenericIterator(make.reader(), ["data", "label"], reader_name="reader")
    assert repr(it) == "<DALIGenericIterator (data, label): 1 pipeline(s), batch_size=2, 4 batches in this epoch>"


def test_old_style_pipeline_with_iter_setup():
    class Fed(Pipeline):
        def __init__(self):
            super().__init__(batch_size=2, num_threads=1, device_id=0)
            self.source, self.i = ops.ExternalSource(), 0

        def define_graph(self):
            self.x = self.source()
            return self.x

        def iter_setup(self):
            if self.i == 3:
                self.i = 0
                raise StopIteration
            self.feed_input(self.x, np.full((2, 1), self.i, "i4"))
            self.i += 1

    it = DALIGenericIterator(Fed(), ["x"], auto_reset=True)
    assert [[b[0]["x"][0].item() for b in it] for _ in range(3)] == [[0, 1, 2]] * 3


def test_iterating_costs_little(make):
    """The iterator's overhead per batch is below a millisecond. Its share in a real pipeline is benchmarked."""
    import time

    def best(run, n=300):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            for _ in range(n):
                run()
            times.append((time.perf_counter() - begin) / n)
        return min(times)

    x = np.zeros((2, 8), "f4")
    pipe = make.source(lambda i: x)
    it = DALIGenericIterator(make.source(lambda i: x), ["x"])
    bare = best(lambda: pipe.run()[0].as_array())
    assert best(lambda: next(it)) - bare < 1e-3
