# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of epochs, compared with its definition. tests/conformance/test_epochs.py compares whole iterators
with DALI."""

import itertools
from pathlib import Path

import pytest

from penstock.plugin.epochs import LastBatchPolicy, ReaderEpochs, SizedEpochs, policy_of

FILL, DROP, PARTIAL = LastBatchPolicy


def reader(n, n_shards, shard, batch_size, pad, stick):
    """The endless sample numbers of a reader, from the definition of sharding."""
    bounds = [(n * s // n_shards, n * (s + 1) // n_shards) for s in range(n_shards)]
    largest = max(b - a for a, b in bounds)
    while True:
        first, end = bounds[shard]
        own = list(range(first, end))
        if pad:
            own += own[-1:] * (-(-largest // batch_size) * batch_size - len(own))
        yield from own
        if not stick:
            shard = (shard + 1) % n_shards


def run(n, n_shards, batch_size, policy, pad, stick, n_epochs=6, shards=None):
    """For each epoch and batch, the samples returned from each shard's reader."""
    shards = list(range(n_shards)) if shards is None else shards
    readers = [reader(n, n_shards, s, batch_size, pad, stick) for s in shards]
    epochs = ReaderEpochs(n, n_shards, shards, batch_size, policy, pad, stick)
    out = []
    for _ in range(n_epochs):
        batches = []
        for step in range(epochs.epoch.batches + epochs.epoch.dropped):
            parts = [list(itertools.islice(r, batch_size)) for r in readers]
            if step < epochs.epoch.batches:
                batches.append([p[:k] for p, k in zip(parts, epochs.keep(step))])
        out.append(batches)
        epochs.advance()
    return out


GRID = list(itertools.product((1, 2, 5, 7, 12), (1, 2, 3), (1, 2, 3, 4, 16)))


@pytest.mark.parametrize("stick", [False, True])
def test_padded_partial_epochs_give_each_sample_once(stick):
    """With padding, which PARTIAL removes, all shards together have the data set exactly once in each epoch."""
    for n, n_shards, batch_size in GRID:
        if n < n_shards:
            continue
        for batches in run(n, n_shards, batch_size, PARTIAL, True, stick):
            given = sorted(x for parts in batches for p in parts for x in p)
            assert given == list(range(n)), (n, n_shards, batch_size)


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("stick", [False, True])
def test_fill_gives_whole_batches_and_all_of_the_shards(pad, stick):
    for n, n_shards, batch_size in GRID:
        if n < n_shards:
            continue
        epochs = run(n, n_shards, batch_size, FILL, pad, stick, n_epochs=3 * n_shards)
        assert all(len(p) == batch_size for batches in epochs for parts in batches for p in parts)
        seen = {x for batches in epochs for parts in batches for p in parts for x in p}
        assert seen == set(range(n)), (n, n_shards, batch_size)


def test_fill_does_not_drift():
    """Samples read ahead shorten the next epoch: after many epochs, every shard was read once per epoch."""
    for n, n_shards, batch_size in GRID:
        if n < n_shards or batch_size > n // n_shards:
            continue
        read = sum(
            len(parts[0])
            for batches in run(n, n_shards, batch_size, FILL, False, False, 4 * n_shards)
            for parts in batches
        )
        assert 0 <= read - 4 * n < batch_size * 2 + n, (n, n_shards, batch_size)


def test_all_processes_have_equally_many_batches():
    """Their epochs have the same length, although each process knows its own shard only."""
    for (n, n_shards, batch_size), policy, pad, stick in itertools.product(
        GRID, LastBatchPolicy, (False, True), (False, True)
    ):
        if n < n_shards:
            continue
        lengths = [
            [len(b) for b in run(n, n_shards, batch_size, policy, pad, stick, shards=[s])] for s in range(n_shards)
        ]
        assert all(length == lengths[0] for length in lengths)


@pytest.mark.parametrize(
    ("policy", "padded", "last", "following"),
    [
        (PARTIAL, True, [7], [1, 2]),
        (PARTIAL, False, [7], [2, 3]),
        (FILL, True, [7, 7], [1, 2]),
        (FILL, False, [7, 1], [2, 3]),
        (DROP, True, [5, 6], [1, 2]),
        (DROP, False, [5, 6], [2, 3]),
    ],
)
def test_the_documented_example(policy, padded, last, following):
    """Samples 1...7, batches of two."""
    first, second = run(7, 1, 2, policy, padded, False, n_epochs=2)
    assert [x + 1 for x in first[-1][0]] == last
    assert [x + 1 for x in second[0][0]] == following


def test_sized_epochs_count_samples_of_all_pipelines():
    epochs = SizedEpochs(7, 2, 3, PARTIAL, padded=False)
    assert epochs.epoch.batches == 2
    assert [epochs.keep(0), epochs.keep(1)] == [[3, 3], [1]]
    fill = SizedEpochs(7, 1, 3, FILL, padded=False)
    lengths = []
    for _ in range(4):
        lengths.append(fill.epoch.batches)
        fill.advance()
    assert lengths == [3, 2, 2, 3]  # 7 samples each: 0-8, 9-14, 15-20, 21-29 of which 2, 1 and 0 were read ahead


def test_sized_epochs_that_were_read_ahead_as_a_whole():
    """With three samples per epoch and four per batch, every fourth epoch was read ahead completely and is skipped."""
    epochs = SizedEpochs(3, 1, 4, FILL, padded=False)
    read, lengths = 0, []
    for _ in range(6):
        lengths.append(epochs.epoch.batches)
        read += 4 * epochs.epoch.batches
        epochs.advance()
        assert epochs._left == 3 - read % 3
    assert lengths == [1] * 6


def test_whether_all_epochs_have_the_same_length():
    for (n, n_shards, batch_size), policy, pad, stick in itertools.product(
        GRID, LastBatchPolicy, (False, True), (False, True)
    ):
        epochs = ReaderEpochs(n, n_shards, list(range(n_shards)), batch_size, policy, pad, stick)
        sized = SizedEpochs(n, n_shards, batch_size, policy, pad)
        for e in (epochs, sized):
            lengths, alike = set(), e.all_alike
            for _ in range(12):
                lengths.add(e.epoch.batches)
                e.advance()
            assert len(lengths) == 1 or not alike, (n, n_shards, batch_size, policy, pad, stick)
    assert ReaderEpochs(8, 2, [0], 2, FILL, False, False).all_alike and SizedEpochs(8, 2, 2, FILL, False).all_alike
    assert (
        not ReaderEpochs(7, 1, [0], 2, FILL, False, False).all_alike and not SizedEpochs(7, 1, 2, FILL, False).all_alike
    )


def test_restart_begins_the_next_shard_afresh():
    epochs = ReaderEpochs(10, 2, [0], 4, FILL, False, False)
    epochs.restart()
    assert epochs.epoch.batches == 2 and epochs._at == [1, 0] and epochs._ahead == [0, 0]


def test_policy_names():
    assert policy_of("drop") is policy_of("DROP") is policy_of(DROP) is DROP
    for wrong in ("last", 1, None):
        with pytest.raises(ValueError, match="FILL, DROP, PARTIAL"):
            policy_of(wrong)


def test_no_framework_is_imported():
    for file in ("epochs.py", "base_iterator.py", "__init__.py"):
        text = (Path(__file__).parents[2] / "src/penstock/plugin" / file).read_text()
        assert "import torch" not in text and "import jax" not in text
