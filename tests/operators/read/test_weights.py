# SPDX-License-Identifier: Apache-2.0
"""Weighted sampling: frequencies, epochs, shards, resuming, threads, and a damaged sample."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_order import numbers, pipeline, run, take
from scipy import stats

from penstock import fn, pipeline_def

WEIGHTS = [1.0, 0.0, 2.5, 4.0, 0.25, 0.0, 8.0]
WAYS = [{"weights": WEIGHTS}, {"weights": WEIGHTS, "replacement": False}, {"weights": WEIGHTS, "num_samples": 23}]


def p_value(found, probability) -> float:
    """p-value of Pearson's chi-square test. The seeds are fixed, so the result never changes."""
    expected = np.asarray(probability) * np.sum(found)
    some = expected > 0
    assert not np.asarray(found)[~some].any()
    return stats.chisquare(np.asarray(found)[some], expected[some]).pvalue


@pytest.mark.parametrize("seed", range(4))
def test_frequencies_with_replacement(seed):
    got = take(numbers(7, seed=seed, weights=WEIGHTS), 40_000)
    assert p_value(np.bincount(got, minlength=7), np.array(WEIGHTS) / sum(WEIGHTS)) > 1e-3
    # Consecutive draws are independent, also across the ends of epochs.
    p = np.array(WEIGHTS) / sum(WEIGHTS)
    pairs = np.bincount(np.array(got[0::2]) * 7 + got[1::2], minlength=49)
    assert p_value(pairs, np.outer(p, p).ravel()) > 1e-3


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_frequencies_without_replacement(draws):
    """Frequencies of each order: each draw is one of the remaining samples, by their weights."""
    weights, epochs = [1.0, 3.0, 0.0, 0.5, 2.0], 20_000
    source = numbers(5, seed=3, weights=weights, num_samples=draws, replacement=False)
    got = np.array(take(source, draws * epochs)).reshape(epochs, draws)
    orders, probability = list(itertools.permutations([0, 1, 3, 4], draws)), []
    for order in orders:
        p, left = 1.0, sum(weights)
        for i in order:
            p, left = p * weights[i] / left, left - weights[i]
        probability.append(p)
    assert abs(sum(probability) - 1) < 1e-12
    found = [int((got == order).all(axis=1).sum()) for order in orders]
    assert sum(found) == epochs and p_value(found, probability) > 1e-3


def test_epochs():
    source = numbers(7, weights=WEIGHTS, replacement=False)
    assert source.meta()["epoch_size"] == 5
    epochs = [take(source, 5) for _ in range(50)]
    assert all(sorted(e) == [0, 2, 3, 4, 6] for e in epochs) and len({tuple(e) for e in epochs}) > 10
    assert numbers(7, weights=WEIGHTS).meta()["epoch_size"] == 7
    assert numbers(7, weights=WEIGHTS, num_samples=23).meta()["epoch_size"] == 23
    padded = numbers(7, weights=WEIGHTS, num_samples=10, num_shards=4, shard_id=3, pad_last_batch=True)
    assert padded.meta()["epoch_size_padded"] == 12
    picks = padded.take(4, 0)
    assert len(set(picks.position.tolist())) == 4 and picks.index[3] == picks.index[2]


def test_each_draw_has_random_numbers_of_its_own():
    picks = numbers(3, weights=[1, 0, 0], num_samples=50).take(50, 0)
    assert picks.index.tolist() == [0] * 50 and len(set(picks.position.tolist())) == 50


@pytest.mark.parametrize("way", WAYS, ids=str)
@given(shards=st.integers(1, 5), batches=st.integers(1, 9), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_shards_take_turns_along_the_draws(way, shards, batches, seed):
    """Draw d of an epoch is the same as with one shard, whichever shard has it."""
    alone = numbers(7, own_seed=seed, **way)
    wanted = {}
    for _ in range(60):
        p = alone.take(1, 0)
        wanted[int(p.epoch[0]), int(p.position[0])] = int(p.index[0])
    for shard in range(shards):
        p = numbers(7, own_seed=seed, num_shards=shards, shard_id=shard, **way).take(batches, 0)
        for e, d, i in zip(p.epoch.tolist(), p.position.tolist(), p.index.tolist()):
            if (e, d) in wanted:
                assert wanted[e, d] == i


@pytest.mark.parametrize("way", WAYS, ids=str)
@given(before=st.integers(0, 40), batch=st.integers(1, 6), counts=st.lists(st.integers(1, 5), min_size=2, max_size=3))
@settings(deadline=None, max_examples=40)
def test_going_on_with_other_shards(way, before, batch, counts):
    """Together, the shards have each draw of each epoch once, with its sample."""
    seen = {}

    def keep(picks):
        for e, d, i in zip(picks.epoch.tolist(), picks.position.tolist(), picks.index.tolist()):
            assert (e, d) not in seen
            seen[e, d] = i

    state = None
    for n in counts:
        sources = [numbers(7, own_seed=5, num_shards=n, shard_id=s, **way) for s in range(n)]
        for s in sources:
            if state is not None:
                s.resume(state)
            for _ in range(before // n):
                keep(s.take(batch, 0))
        state = sources[-1].saved()
    alone = numbers(7, own_seed=5, **way)
    while alone.epoch <= max((e for e, _ in seen), default=0):
        p = alone.take(1, 0)
        assert seen.get((int(p.epoch[0]), int(p.position[0])), int(p.index[0])) == int(p.index[0])


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_resuming_and_threads(tmp_path, way):
    files = []
    for i in range(7):
        files.append(str(tmp_path / f"{i}.jpg"))
        (tmp_path / f"{i}.jpg").write_bytes(b"x")
    whole = run(pipeline(files, 4, **way), 12)
    assert whole == run(pipeline(files, 4, num_threads=3, depth=3, **way), 12)
    assert whole != run(pipeline(files, 4, seed=2, **way), 12)

    @pipeline_def(batch_size=4, seed=1, enable_checkpointing=True)
    def pipe():
        return fn.readers.file(files=files, **way)[1]

    begun = pipe()
    assert run(begun, 5) == whole[:5]
    assert run(pipe(checkpoint=begun.checkpoint()), 7) == whole[5:]
    way = {**way, "weights": WEIGHTS[::-1]}
    with pytest.raises((ValueError, RuntimeError), match="checkpoint"):
        pipe(checkpoint=begun.checkpoint()).run()


def test_weights_of_labels(tmp_path):
    files = []
    for i in range(8):
        files.append(str(tmp_path / f"{i}.jpg"))
        (tmp_path / f"{i}.jpg").write_bytes(b"x")

    @pipeline_def(batch_size=100)
    def pipe(weights):
        return fn.readers.file(files=files, labels=[0] * 6 + [1] * 2, weights=weights, seed=1)[1]

    p = pipe({0: 1 / 6, 1: 1 / 2})
    ones = sum(int(np.sum(p.run()[0].as_array())) for _ in range(40))
    assert stats.binomtest(ones, 4000, 0.5).pvalue > 1e-3
    p = pipe({0: 0, 1: 3})
    assert p.run()[0].as_array().all()
    with pytest.raises((ValueError, RuntimeError), match="no weight for the label 1"):
        pipe({0: 1}).run()


def test_a_bad_sample_is_replaced_by_the_next_draw(tmp_path):
    files = [str(tmp_path / f"{i}.jpg") for i in range(4)]
    for f in files[1:]:
        open(f, "wb").write(b"x")

    @pipeline_def(batch_size=64, on_error="replace")
    def pipe():
        return fn.readers.file(files=files, weights=[3, 1, 1, 0], num_samples=500, seed=1)[1]

    assert set(pipe().run()[0].as_array().ravel().tolist()) == {1, 2}


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"weights": [1, 2]}, r"shape \(2,\), and there are 3 samples"),
        ({"weights": [1, -1, 2]}, "0 or more"),
        ({"weights": [0, 0, 0]}, "above 0"),
        ({"weights": [1, float("nan"), 0]}, "0 or more"),
        ({"weights": [1e308, 1e308, 1e308]}, "finite sum"),
        ({"weights": [1, 0, 1], "replacement": False, "num_samples": 3}, "only the 2 samples"),
        ({"weights": [1, 1, 1], "num_samples": 0}, "num_samples takes at least 1"),
        ({"weights": [1, 1, 1], "num_samples": 2, "num_shards": 3}, "fewer than num_shards"),
        ({"weights": [1, 1, 1], "shuffle": "global"}, "only one of shuffle and weights"),
        ({"num_samples": 3}, "only together with 'weights'"),
        ({"replacement": False}, "only together with 'weights'"),
    ],
    ids=str,
)
def test_errors(tmp_path, kwargs, error):
    files = [str(tmp_path / f"{i}.jpg") for i in range(3)]

    @pipeline_def(batch_size=1)
    def pipe():
        return fn.readers.file(files=files, **kwargs)[1]

    with pytest.raises((ValueError, RuntimeError), match=error):
        pipe().build()
