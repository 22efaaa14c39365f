# SPDX-License-Identifier: Apache-2.0
"""Shards, epochs and padding of readers, compared with a model of the definition and with the real DALI."""

import functools
import itertools
import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sample_order import batches, begin, epoch_of_shard, numbers, pipeline, run, take

import penstock

FLAGS = list(itertools.product((False, True), (False, True)))  # stick_to_shard, pad_last_batch
GRID = [
    (size, batch, shards)
    for size, batch, shards in itertools.product((1, 2, 5, 7, 12, 13), (1, 3, 4, 16), (1, 2, 3, 5))
    if shards <= size
]


def shard_args(shards, shard, stick, pad):
    return {"num_shards": shards, "shard_id": shard, "stick_to_shard": stick, "pad_last_batch": pad}


def observed(module, files, batch, n, args):
    """n batches of a reader, and what it tells of itself."""
    pipe = pipeline(files, batch, module, **args)
    found = run(pipe, n), pipe.reader_meta("reader"), pipe.reader_meta()
    return *found, pipe.epoch_size("reader"), pipe.epoch_size()


@functools.cache
def ours(files, stick, pad):
    """What is observed for the whole grid, once for both tests of it: [(size, batch, n, arguments, observed)]."""
    found = []
    for size, batch, shards in GRID:
        for shard in range(shards):
            args = shard_args(shards, shard, stick, pad)
            n = 4 * -(-size // batch) + 3
            found.append((size, batch, n, args, observed(penstock, list(files[:size]), batch, n, args)))
    return found


@pytest.mark.parametrize("stick, pad", FLAGS)
def test_sequences_are_those_of_the_model(small_files, stick, pad):
    for size, batch, n, args, mine in ours(tuple(small_files), stick, pad):
        assert mine[0] == list(itertools.islice(batches(size, batch, **args), n)), (size, batch, args)


@pytest.mark.parametrize("stick, pad", FLAGS)
def test_sequences_and_meta_are_those_of_dali(dali, small_files, stick, pad):
    for size, batch, n, args, mine in ours(tuple(small_files), stick, pad):
        assert mine == observed(dali, small_files[:size], batch, n, args), (size, batch, args)


@pytest.mark.parametrize(
    "kwargs", [{"random_shuffle": True}, {"random_shuffle": True, "initial_fill": 3}, {"shuffle_after_epoch": True}]
)
@pytest.mark.parametrize("pad", [False, True])
def test_meta_of_shuffling_readers_is_that_of_dali(dali, small_files, kwargs, pad):
    for size, shards in ((5, 1), (5, 2), (13, 3), (40, 7)):
        for shard in range(shards):
            args = {**kwargs, "num_shards": shards, "shard_id": shard, "pad_last_batch": pad}
            mine, theirs = (pipeline(small_files[:size], 4, m, **args) for m in (penstock, dali))
            assert mine.reader_meta("reader") == theirs.reader_meta("reader"), args


sizes = st.integers(1, 1000)
shard_counts = st.integers(1, 64)


@given(size=sizes, shards=shard_counts, batch=st.integers(1, 300), stick=st.booleans(), pad=st.booleans())
@settings(deadline=None, max_examples=40)
def test_every_shard_follows_the_model(size, shards, batch, stick, pad):
    assume(shards <= size)
    for shard in {0, shards // 2, shards - 1}:
        args = shard_args(shards, shard, stick, pad)
        source = numbers(size, **args)
        for expected in itertools.islice(batches(size, batch, **args), 3 * -(-size // shards // batch) + 2):
            assert take(source, batch) == expected


@given(size=sizes, shards=shard_counts, batch=st.integers(1, 300), stick=st.booleans())
@settings(deadline=None, max_examples=40)
def test_each_epoch_over_all_shards_visits_each_sample_once(size, shards, batch, stick):
    """Checked without the model, by the epoch that each sample has."""
    assume(shards <= size)
    n_epochs, seen = 3, [[] for _ in range(3)]
    for shard in range(shards):
        source = numbers(size, **shard_args(shards, shard, stick, False))
        while source.state()["epoch"] < n_epochs:
            picks = source.take(batch, 0)
            for epoch, index in zip(picks.epoch.tolist(), picks.index.tolist()):
                if epoch < n_epochs:
                    seen[epoch].append(index)
    assert all(sorted(s) == list(range(size)) for s in seen)


@given(size=sizes, shards=shard_counts, batch=st.integers(1, 300), stick=st.booleans())
@settings(deadline=None, max_examples=40)
def test_padded_shards_give_equally_many_batches(size, shards, batch, stick):
    assume(shards <= size)
    n_batches, seen = set(), set()
    for shard in range(shards):
        source = numbers(size, **shard_args(shards, shard, stick, True))
        count = 0
        while source.state()["epoch"] == 0:
            seen.update(take(source, batch))
            count += 1
        state = source.state()
        assert (state["epoch"], state["offset"], state["last"]) == (1, 0, batch)
        n_batches.add(count)
    assert n_batches == {math.ceil(math.ceil(size / shards) / batch)} and seen == set(range(size))


@given(size=sizes, shards=shard_counts)
def test_shards_are_as_equal_as_can_be(size, shards):
    assume(shards <= size)
    lengths = [begin(s + 1, size, shards) - begin(s, size, shards) for s in range(shards)]
    sources = [numbers(size, num_shards=shards, shard_id=s) for s in range(shards)]
    assert [int(s._length(0)) for s in sources] == lengths and max(lengths) - min(lengths) <= 1


def test_a_padded_sample_draws_random_numbers_of_its_own():
    picks = numbers(3, pad_last_batch=True).take(8, 0)
    assert picks.index.tolist() == [0, 1, 2, 2, 2, 2, 2, 2]
    assert len(set(picks.position.tolist())) == 8


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("stick, pad", FLAGS)
def test_reset_goes_to_the_next_epoch(small_files, stick, pad, depth):
    """Wherever in an epoch it is called, and whatever was prefetched."""
    size, batch, shards = 13, 3, 2
    for shard, before in itertools.product(range(shards), range(1, 7)):
        args = shard_args(shards, shard, stick, pad)
        pipe = pipeline(small_files[:size], batch, depth=depth, **args)
        run(pipe, before)
        pipe.reset()
        epoch, offset = 0, before * batch
        while offset >= (length := len(epoch_of_shard(size, batch=batch, epoch=epoch, **args))):
            epoch, offset = epoch + 1, offset - length
        if offset >= batch:  # otherwise the last batch ended an epoch or ran on into the next: nothing to leave
            epoch, offset = epoch + 1, 0
        ahead = [epoch_of_shard(size, batch=batch, epoch=e, **args) for e in range(epoch, epoch + 5)]
        expected = list(itertools.chain(*ahead))[offset : offset + 4 * batch]
        assert sum(run(pipe, 4), []) == expected, (args, before)


def test_batches_of_other_sizes(small_files):
    pipe = pipeline(small_files[:7], 5, depth=1)
    found = []
    for n in (5, 2, 1, 4, 3, 5):
        pipe.set_batch_size(n)
        found += run(pipe, 1)[0]
    assert found == [i % 7 for i in range(len(found))]


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("depth", [1, 4])
def test_threads_and_depth_do_not_matter(small_files, threads, depth):
    args = shard_args(3, 1, False, False)
    pipe = pipeline(small_files, 6, num_threads=threads, depth=depth, **args)
    assert run(pipe, 25) == list(itertools.islice(batches(40, 6, **args), 25))
