# SPDX-License-Identifier: Apache-2.0
"""The order of readers: shards, epochs, padding and shuffling, compared with their definition."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from penstock import fn, pipeline_def


@pytest.fixture(scope="module")
def one_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("order") / "f"
    path.write_bytes(b"x")
    return str(path)


def reader(path, size, batch_size, depth=2, pipeline_seed=1, **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=1, prefetch_queue_depth=depth, seed=pipeline_seed)
    def pipe():
        return fn.readers.file(files=[path] * size, name="r", **kwargs)[1]

    return pipe()


def batches(pipe, n):
    return [pipe.run()[0].as_array().ravel().tolist() for _ in range(n)]


def begin(shard, shards, size):
    return math.floor(shard * size / shards)


def expected(size, batch_size, n, shards=1, shard=0, stick=False, pad=False):
    """The definition: the samples of a shard, epoch after epoch, padded with the last one if `pad`."""
    stream, out, epoch = [], [], 0
    while len(out) < n:
        s = shard if stick else (shard + epoch) % shards
        samples = list(range(begin(s, shards, size), begin(s + 1, shards, size)))
        if pad:
            samples += samples[-1:] * (math.ceil(size / shards) - len(samples))
            samples += samples[-1:] * (-len(samples) % batch_size)
        stream += samples
        epoch += 1
        while len(stream) >= batch_size:
            out.append(stream[:batch_size])
            stream = stream[batch_size:]
    return out[:n]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 25), st.integers(1, 9), st.integers(1, 6), st.data())
def test_order(one_file, size, batch_size, shards, data):
    shards = min(shards, size)
    shard = data.draw(st.integers(0, shards - 1))
    stick, pad = data.draw(st.booleans()), data.draw(st.booleans())
    pipe = reader(
        one_file, size, batch_size, num_shards=shards, shard_id=shard, stick_to_shard=stick, pad_last_batch=pad
    )
    n = 3 * size // batch_size + 3
    assert batches(pipe, n) == expected(size, batch_size, n, shards, shard, stick, pad)
    assert pipe.reader_meta("r") == {
        "epoch_size": size,
        "epoch_size_padded": math.ceil(size / shards) * shards if pad else size,
        "number_of_shards": shards,
        "shard_id": shard,
        "pad_last_batch": int(pad),
        "stick_to_shard": int(stick),
    }


SHUFFLES = [
    {"random_shuffle": True},
    {"random_shuffle": True, "initial_fill": 3},
    {"random_shuffle": True, "stick_to_shard": True},
    {"shuffle_after_epoch": True},
    {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 8},
    {"shuffle": "global"},
    {"shuffle": "global", "seed": 4},
]


@pytest.mark.parametrize("size, shards", [(1, 1), (7, 1), (10, 2), (11, 3), (50, 7)])
@pytest.mark.parametrize("kwargs", SHUFFLES, ids=str)
def test_each_sample_once_an_epoch(one_file, size, shards, kwargs):
    """All shards together have each sample exactly once per epoch, and shards are as long as without shuffling."""
    epochs = [Counter() for _ in range(3)]
    for shard in range(shards):
        # Different seeds for each shard, as users may set.
        pipe = reader(one_file, size, 1, pipeline_seed=12 + shard, num_shards=shards, shard_id=shard, **kwargs)
        sticks = pipe.reader_meta("r")["stick_to_shard"]
        for epoch in range(3):
            s = shard if sticks else (shard + epoch) % shards
            epochs[epoch].update(b[0] for b in batches(pipe, begin(s + 1, shards, size) - begin(s, shards, size)))
    for epoch in epochs:
        assert epoch == Counter(range(size))


@pytest.mark.parametrize("kwargs", SHUFFLES, ids=str)
def test_shuffled(one_file, kwargs):
    """Orders differ between epochs, and are the same in another run with any batch size and depth."""
    first = sum(batches(reader(one_file, 100, 10, **kwargs), 30), [])
    epochs = [first[:100], first[100:200], first[200:]]
    assert all(sorted(e) == list(range(100)) for e in epochs)
    assert epochs[0] != epochs[1] != epochs[2] and epochs[0] != list(range(100))
    assert sum(batches(reader(one_file, 100, 25, depth=5, **kwargs), 12), []) == first


def test_seeds(one_file):
    def first(pipeline_seed, **kwargs):
        return batches(reader(one_file, 50, 50, pipeline_seed=pipeline_seed, **kwargs), 1)[0]

    for way in ({"random_shuffle": True}, {"shuffle": "global"}):
        assert first(1, **way) != first(2, **way)
        assert first(1, seed=7, **way) == first(2, seed=7, **way)
        assert first(1, seed=7, **way) != first(1, seed=8, **way)
    # The order that shards share does not depend on the pipeline's seed.
    assert first(1, shuffle_after_epoch=True) == first(2, shuffle_after_epoch=True)
    seeded = {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 3}
    assert first(1, **seeded) == first(2, **seeded) != first(1, shuffle_after_epoch=True)


def test_buffer(one_file):
    """With a buffer of k samples, no sample comes more than k - 1 places early."""
    pipe = reader(one_file, 400, 400, random_shuffle=True, initial_fill=1)
    base = batches(pipe, 1)[0]
    for fill in (2, 10, 100):
        order = batches(reader(one_file, 400, 400, random_shuffle=True, initial_fill=fill), 1)[0]
        place = {v: i for i, v in enumerate(base)}
        early = [place[v] - i for i, v in enumerate(order)]
        assert 0 < max(early) <= fill - 1
    # A buffer for all samples allows any order.
    whole = batches(reader(one_file, 400, 400, random_shuffle=True, initial_fill=1000), 1)[0]
    assert max(place[v] - i for i, v in enumerate(whole)) > 200


class TestGlobal:
    def test_prefix_does_not_depend_on_the_number_of_shards(self, one_file):
        """After k samples per shard, all shards together have read the first k * shards samples of one order."""
        size = 60
        order = batches(reader(one_file, size, size, shuffle="global", seed=5), 1)[0]
        for shards in (2, 3, 4, 7):
            parts = [
                sum(batches(reader(one_file, size, 1, shuffle="global", seed=5, num_shards=shards, shard_id=s), 8), [])
                for s in range(shards)
            ]
            for k in range(1, 9):
                assert sorted(v for p in parts for v in p[:k]) == sorted(order[: k * shards])

    @pytest.mark.parametrize("n", [2, 3, 4, 5])
    def test_all_permutations_are_equally_frequent(self, one_file, n):
        epochs = 60 * math.factorial(n)
        pipe = reader(one_file, n, n * 60, shuffle="global")
        seen = Counter()
        for batch in batches(pipe, epochs // 60):
            seen.update(tuple(batch[i : i + n]) for i in range(0, len(batch), n))
        counts = [seen[p] for p in itertools.permutations(range(n))]
        assert sum(counts) == epochs and stats.chisquare(counts).pvalue > 1e-4

    def test_places_are_uniform(self, one_file):
        n, epochs = 37, 3000
        pipe = reader(one_file, n, n * 100, shuffle="global")
        table = np.array(batches(pipe, epochs // 100)).reshape(epochs, n)
        for place in (0, 1, 18, 36):
            assert stats.chisquare(np.bincount(table[:, place], minlength=n)).pvalue > 1e-4
        pairs = np.bincount(table[:, 0] * n + table[:, 1], minlength=n * n)
        off_diagonal = ~np.eye(n, dtype=bool).ravel()
        assert (pairs[~off_diagonal] == 0).all() and stats.chisquare(pairs[off_diagonal]).pvalue > 1e-4


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({"num_shards": 0}, "shard_id takes 0 to num_shards - 1"),
        ({"shard_id": 1}, "got shard_id=1, num_shards=1"),
        ({"shard_id": -1, "num_shards": 2}, "shard_id takes 0 to num_shards - 1"),
        ({"num_shards": 11}, "there are 10 samples, fewer than num_shards=11"),
        ({"shuffle": "local"}, "shuffle takes 'global' or 'windows'; got 'local'"),
        ({"shuffle": "global", "random_shuffle": True}, "only one of random_shuffle and shuffle can be used"),
        ({"shuffle_after_epoch": True, "random_shuffle": True}, "only one of random_shuffle and shuffle_after_epoch"),
        ({"shuffle_after_epoch": True, "stick_to_shard": True}, "shuffle_after_epoch implies stick_to_shard"),
        ({"random_shuffle": True, "initial_fill": 0}, "initial_fill takes at least 1; got 0"),
    ],
)
def test_errors(one_file, kwargs, text):
    with pytest.raises(ValueError, match=text):
        reader(one_file, 10, 2, **kwargs).build()
