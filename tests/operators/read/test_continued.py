# SPDX-License-Identifier: Apache-2.0
"""A reader that resumes with another number of shards: the rest of the epoch is read exactly once."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_order import numbers

WAYS = {"in order": {}, "sticking": {"stick_to_shard": True}, "after epoch": {"shuffle_after_epoch": True}}
WAYS |= {"global": {"shuffle": "global"}, "buffer": {"random_shuffle": True, "initial_fill": 7}}
WAYS["sticking buffer"] = {"random_shuffle": True, "stick_to_shard": True}


def shards_of(size, n, **kwargs):
    """The seeds of shards matter for buffers only."""
    seeds = [0] * n if kwargs.get("random_shuffle") else range(n)
    return [numbers(size, num_shards=n, shard_id=i, seed=seeds[i], **kwargs) for i in range(n)]


def take(source, n) -> list[tuple[int, int]]:
    picks = source.take(n, 0)
    return list(zip(picks.epoch.tolist(), picks.index.tolist()))


@given(
    size=st.integers(5, 60),
    counts=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    batches=st.lists(st.integers(0, 9), min_size=3, max_size=3),
    batch=st.integers(1, 7),
    way=st.sampled_from(list(WAYS)),
    data=st.data(),
)
@settings(deadline=None, max_examples=150)
def test_every_sample_once_an_epoch(size, counts, batches, batch, way, data):
    """However often the number of shards changes, and whichever shard's checkpoint is used."""
    seen = []
    sources = shards_of(size, counts[0], **WAYS[way])
    for n, count in zip(batches, counts[1:]):
        seen += [t for s in sources for _ in range(n) for t in take(s, batch)]
        state = data.draw(st.sampled_from(sources)).saved()
        sources = shards_of(size, count, **WAYS[way])
        for s in sources:
            s.resume(state)
    last = max((e for e, _ in seen), default=0) + 1
    for s in sources:  # to the end of an epoch that was not begun before
        while s.epoch <= last:
            seen += take(s, 1)
    found = Counter(seen)
    for epoch in range(last + 1):
        assert [found[epoch, i] for i in range(size)] == [1] * size, f"epoch {epoch}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 3])
def test_any_shard_of_the_same_number(way, n):
    """The checkpoint of one shard has the position of all."""
    sources = shards_of(20, n, **WAYS[way])
    for s in sources:
        for _ in range(4):
            take(s, 3)
    for place in sources:
        others = shards_of(20, n, **WAYS[way])
        for other in others:
            other.resume(place.saved())
        assert [s.saved() for s in others] == [s.saved() for s in sources]


def test_padded_shards_stay_equally_long():
    sources = shards_of(21, 4, shuffle="global", pad_last_batch=True)
    seen = [t for s in sources for t in take(s, 2)]
    rest = shards_of(21, 2, shuffle="global", pad_last_batch=True)
    for s in rest:
        s.resume(sources[1].saved())
        while s.epoch == 0:
            seen += take(s, 2)
        assert s.offset == 0
    assert set(seen) == {(0, i) for i in range(21)} and len(seen) - 21 == 3  # 13 are left: 7 each, in whole batches: 8
