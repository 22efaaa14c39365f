# SPDX-License-Identifier: Apache-2.0
"""Iterators with peek: CLU's protocol, with CLU's own classes and T5X's wrappers."""

import concurrent.futures
import threading
import time
import weakref

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("clu")

from clu.data import dataset_iterator as clu  # noqa: E402

from penstock import fn, pipeline_def  # noqa: E402
from penstock.pipeline import PipelineError  # noqa: E402
from penstock.plugin.jax import DALIGenericIterator  # noqa: E402
from penstock.plugin.jax.clu import (  # noqa: E402
    DALIGenericPeekableIterator,
    get_spec_for_array,
    peekable_data_iterator,
)


@pytest.fixture
def iterator_fn(files):
    def make(n=7, **settings):
        @peekable_data_iterator(output_map=["data", "labels"], reader_name="reader", **settings)
        def iterator_fn():
            return fn.readers.file(files=files[:n], labels=list(range(n)), name="reader")

        return iterator_fn

    return make


def counting(**kwargs):
    """An iterator of numbered batches: 0, 1, 2 ..."""

    @peekable_data_iterator(output_map=["x"], **kwargs)
    def numbers(source=lambda i: np.full((2, 3), i, "f4")):
        return fn.external_source(source=source)

    return numbers


def labels(batch):
    return batch["labels"].ravel().tolist()


def test_protocol(iterator_fn):
    it = iterator_fn()(batch_size=2)
    assert isinstance(it, (DALIGenericPeekableIterator, DALIGenericIterator))
    assert isinstance(it, clu.DatasetIterator) and isinstance(it, clu.PeekableDatasetIterator)
    want = {"data": clu.ArraySpec(np.dtype("u1"), (2, 8)), "labels": clu.ArraySpec(np.dtype("i4"), (2, 1))}
    assert it.element_spec == want == {n: get_spec_for_array(a) for n, a in it.peek().items()}
    assert str(it.element_spec["labels"]) == "int32[2, 1]"
    # As in T5X, which makes shapes, types and a batch of zeros to compile with from it.
    assert jax.tree.map(lambda s: (16, *s.shape[1:]), it.element_spec)["data"] == (16, 8)
    zeros = jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), it.element_spec)
    assert {n: (a.shape, a.dtype) for n, a in zeros.items()} == {n: (a.shape, a.dtype) for n, a in next(it).items()}


def test_peeking_takes_nothing(iterator_fn):
    it = iterator_fn()(batch_size=2)
    peeked = it.peek()
    assert it.peek() is peeked and it.peek_async().result() is peeked and next(it) is peeked
    assert labels(it.peek()) == [2, 3] and labels(it.next()) == [2, 3] and labels(next(it)) == [4, 5]
    assert labels(it.peek_async().result()) == [6, 0]
    assert [labels(b) for b in it] == [[6, 0]]


def test_peeking_at_the_end(iterator_fn):
    it = iterator_fn()(batch_size=7)
    next(it)
    for peek in (it.peek, it.peek_async().result, it.peek_async().result):
        with pytest.raises(StopIteration):
            peek()
    with pytest.raises(StopIteration):
        next(it)
    with pytest.raises(StopIteration):
        it.peek()
    it.reset()
    assert labels(it.peek()) == labels(next(it)) == [*range(7)]

    it = iterator_fn(auto_reset=True)(batch_size=7)
    next(it)
    with pytest.raises(StopIteration):
        it.peek()
    with pytest.raises(StopIteration):
        next(it)
    assert labels(it.peek()) == labels(next(it)) == [*range(7)]


def test_several_epochs_while_peeking(iterator_fn):
    plain, peeking = (iterator_fn()(batch_size=2) for _ in range(2))
    for _ in range(3):
        seen = []
        for batch in peeking:
            seen.append(labels(batch))
            try:
                peeking.peek_async()
                peeking.peek()
            except StopIteration:
                pass
        assert seen == [labels(b) for b in plain]


def test_next_waits_for_a_peek_under_way():
    started = threading.Event()

    def source(i):
        if i == 1:
            started.set()
            time.sleep(0.3)
        return np.full((2, 3), i, "f4")

    it = counting()(source=source, batch_size=2, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)
    next(it)
    future = it.peek_async()
    assert it.peek_async() is future
    assert started.wait(5) and next(it) is future.result() and future.done()
    assert it.peek_async() is not future
    assert next(it)["x"][0, 0] == 2


def test_without_a_first_batch_prepared():
    it = counting(prepare_first_batch=False)(batch_size=2)
    assert not it._first
    assert it.element_spec == {"x": clu.ArraySpec(np.dtype("f4"), (2, 3))}
    assert [next(it)["x"][0, 0].item() for _ in range(3)] == [0, 1, 2]


def test_many_threads():
    """Every batch is returned once, even if other threads peek."""
    it = counting(size=400)(batch_size=2)
    taken, problems = [], []

    def work(k):
        try:
            while True:
                if k % 2:
                    it.peek_async()
                it.peek()
                taken.append(int(next(it)["x"][0, 0]))
        except StopIteration:
            pass
        except Exception as e:
            problems.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not problems and sorted(taken) == list(range(200))


def test_errors_are_peeked_at_too(files):
    names = [f + ".missing" if i == 3 else f for i, f in enumerate(files[:6])]

    @peekable_data_iterator(output_map=["data", "labels"], reader_name="reader")
    def pipe():
        return fn.readers.file(files=names, labels=list(range(6)), name="reader")

    it = pipe(batch_size=2)
    next(it)
    for peek in (it.peek, it.peek_async().result, it.__next__):
        with pytest.raises(PipelineError, match="02.bin|03.bin"):
            peek()
    assert labels(it.peek()) == labels(next(it)) == [4, 5]


def test_a_batch_of_another_shape():
    it = counting()(source=lambda i: np.zeros((2 - i // 2, 3), "f4"), batch_size=2)
    assert [next(it)["x"].shape for _ in range(2)] == [(2, 3)] * 2
    with pytest.raises(ValueError, match=r"'x': a batch of float32\[1, 3\] follows batches of float32\[2, 3\]"):
        it.peek()


def test_partial_batches(iterator_fn):
    it = iterator_fn(last_batch_policy="PARTIAL")(batch_size=4)
    assert it.element_spec["labels"].shape == (None, 1)
    assert [labels(b) for b in it] == [[0, 1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("pad", [True, False])
def test_padding_is_told(make, pad):
    it = DALIGenericPeekableIterator(make.reader(pad_last_batch=pad), ["data", "labels"], reader_name="reader")
    masks = []
    for _ in it:
        try:
            it.peek()
        except StopIteration:
            pass
        masks.append(it.is_nonpadding.tolist())
    assert masks == [[True, True]] * 3 + [[True, False]]
    endless = counting()(batch_size=2)
    next(endless)
    assert endless.is_nonpadding.tolist() == [True, True]


class Sharded(clu.DatasetIterator):
    """Passes everything on, like T5X's wrapper that distributes batches over devices."""

    def __init__(self, it):
        self._it = it

    def __next__(self):
        return jax.tree.map(lambda a: jax.device_put(a, jax.devices()[0]), next(self._it))

    def reset(self):
        self._it.reset()

    @property
    def element_spec(self):
        return self._it.element_spec

    def save(self, filename):
        self._it.save(filename)

    def restore(self, filename):
        self._it.restore(filename)


def test_inside_of_clus_own_iterator(iterator_fn):
    """As in training with T5X: wrap, peek in the background while compiling, then take batches."""
    it = clu.PeekableDatasetIterator(Sharded(iterator_fn()(batch_size=2)))
    first_batch_ready = it.peek_async()
    assert jax.tree.map(lambda s: s.shape, it.element_spec) == {"data": (2, 8), "labels": (2, 1)}
    first_batch_ready.result()
    assert [labels(next(it)) for _ in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 0]]
    with pytest.raises(StopIteration):
        next(it)
    it.reset()
    assert labels(it.peek()) == [1, 2]


def test_prefetch_to_device(iterator_fn):
    utils = pytest.importorskip("flax.jax_utils")
    devices = jax.local_devices()[:1]

    # It calls iter() for every batch; with "raise", this does not start the next epoch.
    @peekable_data_iterator(output_map=["x"], size=8, devices=devices, auto_reset="raise")
    def numbers(num_shards, shard_id):
        return fn.external_source(source=lambda i: np.full((2, 3), i, "f4"))

    got = list(utils.prefetch_to_device(numbers(batch_size=2), 2, devices=devices))
    assert [int(b["x"][0, 0, 0]) for b in got] == [0, 1, 2, 3] and got[0]["x"].shape == (1, 2, 3)


def test_nothing_is_left_of_an_iterator(iterator_fn):
    """The peeking thread refers to it only while working."""
    it = iterator_fn()(batch_size=2)
    it.peek_async().result()
    gone = weakref.ref(it)
    del it
    for _ in range(50):
        if gone() is None:
            break
        time.sleep(0.02)
    assert gone() is None


def test_cancelled_future():
    it = counting()(batch_size=2)
    it._mutex.acquire()  # keeps the thread from making progress
    future = concurrent.futures.Future()
    it._future = future
    it._mutex.release()
    assert future.cancel()
    assert it.peek_async().result()["x"][0, 0] == 0 and next(it)["x"][0, 0] == 0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda p: DALIGenericPeekableIterator(p, ["x", "y"]), ValueError, "2 names"),
        (lambda p: DALIGenericPeekableIterator(p, ["x"], sise=4), TypeError, r"Peekable.* 'sise'. Did you mean 'size'"),
        (lambda p: DALIGenericPeekableIterator(p, ["x"], reader_name="r"), ValueError, "no reader of that name"),
        (lambda p: peekable_data_iterator(3), TypeError, "decorates a function"),
        (lambda p: peekable_data_iterator(lambda: 1)(batch_size=2), ValueError, "output_map takes a list of names"),
        (lambda p: peekable_data_iterator(pipeline_def(len)), TypeError, "decorate the function itself"),
    ],
)
def test_mistakes(make, call, error, text):
    with pytest.raises(error, match=text):
        call(make.source(lambda i: np.zeros((2, 3), "f4")))
