# SPDX-License-Identifier: Apache-2.0
"""Whole iterators over the grid of shards, policies, padding, sticking, shuffling and sizes, against the definition of
a reader's order and of an epoch. tests/conformance/test_epochs.py compares with the real DALI instead."""

import importlib
import itertools

import numpy as np
import pytest
from test_epochs import reader

from penstock import fn, pipeline_def
from penstock.plugin.epochs import LastBatchPolicy, ReaderEpochs

EPOCHS = 4
SHUFFLES = ({}, {"random_shuffle": True}, {"shuffle_after_epoch": True}, {"shuffle": "global"})
GRID = list(
    itertools.product((3, 5, 7, 8, 13), (1, 2, 3, 16), (1, 2, 3), (False, True), (False, True), LastBatchPolicy)
)


@pipeline_def(num_threads=1, device_id=0, prefetch_queue_depth=1)
def labels(files, shard, n_shards, pad, stick, shuffle):
    n = len(files)
    _, label = fn.readers.file(
        files=files,
        labels=list(range(n)),
        shard_id=shard,
        num_shards=n_shards,
        pad_last_batch=pad,
        stick_to_shard=stick,
        name="reader",
        **shuffle,
    )
    return label


def iterator_of(framework):
    pytest.importorskip({"pytorch": "torch"}.get(framework, framework))
    return importlib.import_module(f"penstock.plugin.{framework}").DALIGenericIterator


def epochs_of(iterator, pipes, policy):
    it = iterator(pipes, ["label"], reader_name="reader", last_batch_policy=policy)
    out = []
    for _ in range(EPOCHS):
        out.append((len(it), [[np.asarray(part["label"]).ravel().tolist() for part in batch] for batch in it]))
        it.reset()
    return out


def model(n, batch_size, n_shards, pad, stick, policy):
    """The epochs of an iterator over all shards."""
    readers = [reader(n, n_shards, s, batch_size, pad, stick) for s in range(n_shards)]
    epochs = ReaderEpochs(n, n_shards, list(range(n_shards)), batch_size, policy, pad, stick)
    for _ in range(EPOCHS):
        batches = []
        for step in range(epochs.epoch.batches + epochs.epoch.dropped):
            parts = [list(itertools.islice(r, batch_size)) for r in readers]
            if step < epochs.epoch.batches:
                batches.append([p[:k] for p, k in zip(parts, epochs.keep(step))])
        yield len(batches), batches
        epochs.advance()


# The classes differ in their tensors only, so a part of the grid is enough for all but the first.
@pytest.mark.parametrize(("framework", "part"), [*(("pytorch", i) for i in range(8)), ("paddle", 3)])
def test_batches(files, framework, part):
    iterator, cases = iterator_of(framework), 0
    for i, (n, batch_size, n_shards, pad, stick, policy) in enumerate(GRID[part::8]):
        if policy is LastBatchPolicy.DROP and batch_size > n // n_shards:
            continue  # has no batch
        shuffle = SHUFFLES[(i + part) % 4]
        implied = bool(shuffle) and "random_shuffle" not in shuffle  # these make readers stick to their shards
        own = stick and not implied
        pipes = [labels(files[:n], s, n_shards, pad, own, shuffle, batch_size=batch_size) for s in range(n_shards)]
        got, want = (
            epochs_of(iterator, pipes, policy),
            list(model(n, batch_size, n_shards, pad, stick or implied, policy)),
        )
        case = (n, batch_size, n_shards, pad, stick, policy, shuffle)
        if not shuffle:
            assert got == want, case
        sizes = [[(length, [list(map(len, parts)) for parts in batches]) for length, batches in e] for e in (got, want)]
        assert sizes[0] == sizes[1], case
        if pad and policy is LastBatchPolicy.PARTIAL:
            for _, batches in got:
                assert sorted(x for parts in batches for p in parts for x in p) == list(range(n)), case
        cases += 1
        for p in pipes:
            p.close()
    assert cases > 50
