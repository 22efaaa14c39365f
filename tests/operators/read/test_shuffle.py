# SPDX-License-Identifier: Apache-2.0
"""The three ways to shuffle: the guarantees of each."""

import collections
import itertools
import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sample_order import begin, epoch_of_shard, epochs, numbers, pipeline, run, take
from scipy import stats

import penstock

GLOBAL, AFTER, BUFFER = {"shuffle": "global"}, {"shuffle_after_epoch": True}, {"random_shuffle": True}
WAYS = [GLOBAL, AFTER, {**BUFFER, "stick_to_shard": True}, {**BUFFER, "initial_fill": 3, "stick_to_shard": True}]
SEEDED = [GLOBAL, BUFFER, {**BUFFER, "initial_fill": 5}]

sizes = st.integers(1, 2000)


def are_uniform(counts: np.ndarray, expected: float, freedom: int) -> bool:
    """Pearson's chi-square test at 0.01 %; the counts follow from fixed seeds, so it either always passes or never."""
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), freedom) > 1e-4


@pytest.mark.parametrize("way", WAYS, ids=str)
@given(size=sizes, shards=st.integers(1, 9), seed=st.integers(0, 2**31 - 1))
@settings(deadline=None, max_examples=60)
def test_each_epoch_is_a_permutation(way, size, shards, seed):
    """A permutation of the shard's samples (`random_shuffle`) or of the data set over all shards."""
    assume(shards <= size)
    of_shards = [epochs(size, 3, num_shards=shards, shard_id=s, seed=seed, **way) for s in range(shards)]
    for e in range(3):
        assert sorted(itertools.chain(*(s[e] for s in of_shards))) == list(range(size))
    if "random_shuffle" in way:
        assert len({tuple(sorted(epoch)) for epoch in of_shards[0]}) == 1


@pytest.mark.parametrize("way", WAYS[:2], ids=str)
def test_permutations_of_every_size(way):
    for size in range(1, 201):
        assert all(sorted(epoch) == list(range(size)) for epoch in epochs(size, 2, **way)), size


@pytest.mark.parametrize(
    "way", [BUFFER, {**BUFFER, "initial_fill": 5}, {**BUFFER, "stick_to_shard": True}, GLOBAL], ids=str
)
@given(size=st.integers(1, 90), shards=st.integers(1, 4), n=st.integers(1, 400))
@settings(deadline=None, max_examples=30)
def test_picks_of_many_epochs_at_once_are_those_of_each(way, size, shards, n):
    """Replacements of bad samples are looked up individually."""
    assume(shards <= size)
    for shard in range(shards):
        source = numbers(size, seed=9, num_shards=shards, shard_id=shard, **way)
        picks = source.take(n, 0)
        for epoch in set(picks.place.tolist()):
            at = picks.place == epoch
            np.testing.assert_array_equal(picks.index[at], source.order.index(shard, epoch, picks.offset[at]))
        np.testing.assert_array_equal(picks.position, picks.index)
        np.testing.assert_array_equal(picks.epoch, picks.place)


def test_permutation_of_many_samples_is_quick():
    size = 1_300_000
    source = numbers(size, seed=3, **GLOBAL)
    begin_time = time.thread_time()
    order = source.take(size, 0).index
    took = time.thread_time() - begin_time
    np.testing.assert_array_equal(np.bincount(order, minlength=size), 1)
    assert abs(np.corrcoef(order, np.arange(size))[0, 1]) < 5 / np.sqrt(size)
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 5 / np.sqrt(size)
    assert took < 5, took
    begin_time = time.thread_time()
    take(source, 256)
    assert time.thread_time() - begin_time < 0.2  # no table is made for an epoch


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("over", ["seeds", "epochs"])
def test_every_permutation_is_equally_likely(size, over):
    n = 24_000
    if over == "seeds":
        orders = [tuple(take(numbers(size, seed=s, **GLOBAL), size)) for s in range(n)]
    else:
        orders = list(map(tuple, epochs(size, n, seed=7, **GLOBAL)))
    counts = collections.Counter(orders)
    every = [counts[p] for p in itertools.permutations(range(size))]
    assert sum(every) == n and are_uniform(np.array(every), n / len(every), len(every) - 1)


@pytest.mark.parametrize("way", [GLOBAL, AFTER, {**BUFFER, "initial_fill": 1000}], ids=str)
@pytest.mark.parametrize("size", [7, 50])
def test_every_sample_is_equally_likely_at_every_place(way, size):
    n, counts = 6000, np.zeros((size, size))
    for i in range(n):
        key = {"shuffle_after_epoch_seed": i} if way is AFTER else {"seed": i}
        counts[np.arange(size), take(numbers(size, **key, **way), size)] += 1
    assert are_uniform(counts, n / size, (size - 1) ** 2)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_epochs_differ(way):
    found = epochs(100, 20, seed=1, **way)
    assert len(set(map(tuple, found))) == 20 and list(range(100)) not in found


@pytest.mark.parametrize("way", SEEDED, ids=str)
def test_depends_on_the_seed_only(way):
    order = epochs(100, 3, seed=1, **way)
    assert order == epochs(100, 3, seed=1, **way) == epochs(100, 3, seed=5, own_seed=1, **way)
    for other in ({"seed": 2}, {"seed": 1, "own_seed": 2}, {"seed": 1 + 2**20}):
        assert all(a != b for a, b in zip(order, epochs(100, 3, **other, **way)))


def test_after_epoch_depends_on_its_own_seed_only():
    """So shards with different pipeline seeds agree."""
    order = epochs(100, 3, seed=1, **AFTER)
    assert order == epochs(100, 3, seed=2, own_seed=9, **AFTER)
    assert order != epochs(100, 3, seed=1, shuffle_after_epoch_seed=123, **AFTER)


@pytest.mark.parametrize("own_seed", [None, 4])
def test_global_shards_agree_whatever_their_pipelines_seeds(own_seed):
    args = {**GLOBAL, "num_shards": 3} | ({} if own_seed is None else {"own_seed": own_seed})
    found = [epochs(101, 2, seed=s, shard_id=s, **args) for s in range(3)]
    for e in range(2):
        assert sorted(itertools.chain(*(f[e] for f in found))) == list(range(101))


@given(size=sizes, shards=st.integers(1, 12), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=60)
def test_global_shards_take_turns_along_one_order(size, shards, seed):
    """Whatever the number of shards, all shards together have read the same first samples of one order."""
    assume(shards <= size)
    whole = epochs(size, 2, own_seed=seed, **GLOBAL)
    of_shards = [epochs(size, 2, own_seed=seed, num_shards=shards, shard_id=s, **GLOBAL) for s in range(shards)]
    for e in range(2):
        turns = itertools.zip_longest(*(s[e] for s in of_shards))
        together = [i for turn in turns for i in turn if i is not None]
        assert together == whole[e]


@given(size=sizes, shards=st.integers(1, 9))
@settings(deadline=None, max_examples=60)
def test_after_epoch_shards_are_parts_of_one_order(size, shards):
    assume(shards <= size)
    whole = epochs(size, 2, **AFTER)
    for s in range(shards):
        first, end = begin(s, size, shards), begin(s + 1, size, shards)
        assert epochs(size, 2, num_shards=shards, shard_id=s, **AFTER) == [w[first:end] for w in whole]


@given(size=sizes, fill=st.integers(1, 300), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=60)
def test_initial_fill_bounds_how_far_a_sample_moves_forward(size, fill, seed):
    """A buffer of one place keeps the order. With `fill` places, sample p comes out at position p - fill + 1 at the
    earliest."""
    comes_in = epochs(size, 1, initial_fill=1, **BUFFER)[0]
    place = np.empty(size, int)
    place[comes_in] = np.arange(size)
    for order in epochs(size, 2, seed=seed, initial_fill=fill, **BUFFER):
        assert (place[order] - np.arange(size)).max() <= fill - 1
    assert sorted(comes_in) == list(range(size))


def test_random_shuffle_uses_the_whole_buffer():
    comes_in = epochs(1000, 1, initial_fill=1, **BUFFER)[0]
    place = {sample: p for p, sample in enumerate(comes_in)}
    first = [place[take(numbers(1000, seed=s, initial_fill=8, **BUFFER), 1)[0]] for s in range(800)]
    assert are_uniform(np.bincount(first, minlength=8), 100, 7) and max(first) == 7


def test_random_shuffle_mixes_the_data_set_once_before_it_is_sharded():
    """So every shard has all classes of a sorted folder. Its samples are the same for every seed."""
    for shard in range(2):
        args = {"num_shards": 2, "shard_id": shard, **BUFFER}
        held = {tuple(sorted(epochs(1000, 1, seed=seed, **args)[0])) for seed in range(3)}
        assert len(held) == 1
        # A random half of 1000 samples with 500 of the first class has 250 +- 7.9 (hypergeometric) of that class.
        assert abs(sum(i < 500 for i in held.pop()) - 250) < 40


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_threads_and_depth_do_not_matter(small_files, way):
    shards = {"num_shards": 3, "shard_id": 1}
    expected = list(itertools.chain(*epochs(40, 4, seed=1, **shards, **way)))
    for threads, depth in itertools.product((1, 8), (1, 4)):
        pipe = pipeline(small_files, 4, num_threads=threads, depth=depth, seed=1, **shards, **way)
        assert sum(run(pipe, 13), []) == expected[:52], (threads, depth)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_reset_in_mid_epoch_begins_the_next(small_files, way, depth):
    second = epochs(40, 3, seed=1, **way)[1]
    for before in (1, 2, 5, 9):
        pipe = pipeline(small_files, 4, depth=depth, seed=1, **way)
        run(pipe, before)
        pipe.reset()
        assert sum(run(pipe, 10), []) == second, before


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_padding_repeats_the_last_sample_of_the_shuffled_shard(way):
    for shard in range(3):
        args = {"num_shards": 3, "shard_id": shard, "seed": 1, **way}
        source = numbers(13, pad_last_batch=True, **args)
        for epoch in epochs(13, 3, **args):
            padded = len(epoch_of_shard(13, 3, shard, True, True, batch=4))
            assert sum((take(source, 4) for _ in range(padded // 4)), []) == epoch + [epoch[-1]] * (padded - len(epoch))


@pytest.mark.parametrize("pad", [False, True])
def test_after_epoch_shuffles_as_dali_does(dali, small_files, pad):
    """Random numbers differ between the libraries. In both, all shards share the order, each sticks to its part, and
    the first epoch is already shuffled."""
    for module in (dali, penstock):
        args = {"pad_last_batch": pad, **AFTER}
        whole = run(pipeline(small_files, 40, module, **args), 3)
        assert list(range(40)) not in whole and len(set(map(tuple, whole))) == 3
        for shard in range(3):
            pipe = pipeline(small_files, 14, module, num_shards=3, shard_id=shard, **args)
            first, end = begin(shard, 40, 3), begin(shard + 1, 40, 3)
            parts = [w[first:end] + [w[end - 1]] * ((14 - end + first) * pad) for w in whole]
            if not pad:
                found = sum(run(pipe, 3), [])
                assert found[: len(sum(parts, []))] == sum(parts, [])[: len(found)]
            else:
                assert run(pipe, 3) == parts
