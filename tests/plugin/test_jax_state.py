# SPDX-License-Identifier: Apache-2.0
"""Saving and restoring the position of an iterator, as in CLU and T5X."""

import json

import numpy as np
import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("clu")

from clu.data import dataset_iterator as clu  # noqa: E402
from etils import epath  # noqa: E402

from penstock import fn  # noqa: E402
from penstock.plugin.jax import data_iterator  # noqa: E402
from penstock.plugin.jax.clu import DALIGenericPeekableIterator, peekable_data_iterator  # noqa: E402


@pytest.fixture
def iterator_fn(files):
    def make(decorator=peekable_data_iterator, **settings):
        @decorator(output_map=["data", "label", "noise"], reader_name="reader", **settings)
        def iterator_fn():
            data, label = fn.readers.file(files=files[:7], labels=list(range(7)), random_shuffle=True, name="reader")
            return data, label, fn.random.uniform(range=(0, 1))

        return iterator_fn

    return make


def content(batch):
    return batch["label"].ravel().tolist(), np.round(np.asarray(batch["noise"]), 6).ravel().tolist()


def rest(it, n_epochs=2):
    """All batches until the end of the epoch, and those of the following epochs."""
    return [[content(b) for b in it] for _ in range(n_epochs)]


STEPS = range(10)


@pytest.mark.parametrize("taken", STEPS)
@pytest.mark.parametrize("peeked", [False, True])
def test_go_on_from_any_step(iterator_fn, tmp_path, taken, peeked):
    """In another process the seed differs unless it is given. The seed of the state is used."""
    make = iterator_fn(auto_reset=True)
    it = make(batch_size=2, seed=5, enable_checkpointing=True)
    for _ in range(taken):
        try:
            next(it)
        except StopIteration:
            pass
    if peeked:
        try:
            it.peek_async().result()
        except StopIteration:
            pass
    it.save(tmp_path / "state")
    want = rest(it)
    later = make(batch_size=2, num_threads=2, enable_checkpointing=True)
    later.restore(epath.Path(tmp_path / "state"))
    assert rest(later) == want
    again = make(
        batch_size=2, checkpoints=[json.dumps(p) for p in json.loads((tmp_path / "state").read_text())["pipelines"]]
    )
    assert rest(again) == want


def test_decorated_function_takes_checkpoints(iterator_fn):
    make = iterator_fn(data_iterator)
    it = make(batch_size=2, enable_checkpointing=True)
    next(it)
    saved = it.checkpoints()
    want = rest(it)
    assert rest(make(batch_size=2, checkpoints=saved)) == want


def test_back_and_forth(iterator_fn, tmp_path):
    """A running iterator is restored repeatedly. The peeked batch is dropped."""
    it = iterator_fn()(batch_size=2, enable_checkpointing=True)
    first = content(next(it))
    it.save(str(tmp_path / "one"))
    second = content(next(it))
    for _ in range(2):
        it.peek()
        it.restore(str(tmp_path / "one"))
        assert content(it.peek()) == second and content(next(it)) == second != first


def test_through_clus_own_iterator(iterator_fn, tmp_path):
    make = iterator_fn()
    it = clu.PeekableDatasetIterator(make(batch_size=2, enable_checkpointing=True))
    next(it)
    it.save(tmp_path / "state")
    want = [content(next(it)) for _ in range(3)]
    later = clu.PeekableDatasetIterator(make(batch_size=2, enable_checkpointing=True))
    later.restore(tmp_path / "state")
    later.peek_async().result()
    assert [content(next(later)) for _ in range(3)] == want


def test_mistakes(iterator_fn, make, tmp_path):
    state = tmp_path / "state"
    it = iterator_fn()(batch_size=2)
    with pytest.raises(RuntimeError, match="enable_checkpointing=True"):
        it.save(state)
    with pytest.raises(FileNotFoundError):
        it.restore(state)
    for text, message in (
        ("no JSON", "not the state"),
        ("[]", "not the state"),
        ('{"penstock iterator": 9}', "format 9"),
    ):
        state.write_text(text)
        with pytest.raises(ValueError, match=message):
            it.restore(state)
    by_hand = DALIGenericPeekableIterator(make.reader(), ["data", "label"], reader_name="reader")
    with pytest.raises(RuntimeError, match="decorate the function"):
        by_hand.restore(state)
    other = peekable_data_iterator(lambda: fn.external_source(source=lambda i: np.zeros((2, 3), "f4")), ["x"])
    other(batch_size=2, enable_checkpointing=True).save(state)
    with pytest.raises(ValueError, match="another pipeline"):
        it.restore(state)
    assert len([*it]) == 4  # and it still works
