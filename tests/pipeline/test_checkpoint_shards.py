# SPDX-License-Identifier: Apache-2.0
"""Resuming with other shards: the rest of the epoch is read exactly once, with any shuffling and seeds."""

from collections import Counter

import numpy as np
import pytest

from penstock import fn, pipeline_def

N, BATCH = 29, 3


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    root = tmp_path_factory.mktemp("files")
    for i in range(N):
        (root / f"{i:02}.bin").write_bytes(bytes([i]) * (i + 1))
    return [str(root / f"{i:02}.bin") for i in range(N)]


def shards(files, n, checkpoint=None, seeds=None, depth=2, threads=1, **reader):
    @pipeline_def(batch_size=BATCH, num_threads=threads, prefetch_queue_depth=depth, enable_checkpointing=True)
    def pipe(shard):
        data, label = fn.readers.file(files=files, name="reader", num_shards=n, shard_id=shard, **reader)
        return label, fn.random.uniform(), fn.shapes(data)

    return [pipe(i, seed=seeds[i] if seeds else -1, checkpoint=checkpoint) for i in range(n)]


def labels(pipe) -> list[int]:
    label, _, shape = pipe.run()
    np.testing.assert_array_equal(shape.as_array().ravel(), label.as_array().ravel() + 1)  # data and label are a pair
    return label.as_array().ravel().tolist()


WAYS = {
    "in order": {},
    "random_shuffle": {"random_shuffle": True, "initial_fill": 5},
    "large buffer": {"random_shuffle": True},
    "sticking": {"random_shuffle": True, "stick_to_shard": True, "initial_fill": 3},
    "shuffle_after_epoch": {"shuffle_after_epoch": True},
    "global": {"shuffle": "global"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 5), (1, 3), (4, 1)])
def test_each_sample_once_in_the_epoch(files, way, before, after):
    """From every step of the epoch, with one seed and the checkpoint of one shard."""
    reader, seeds = WAYS[way], [7] * before
    for step in range(1 + N // before // BATCH):
        old = shards(files, before, seeds=seeds, depth=1 + step % 3, **reader)
        seen = [x for _ in range(step) for p in old for x in labels(p)]
        new = shards(files, after, checkpoint=old[step % before].checkpoint(), depth=2, threads=2, **reader)
        assert all(p.seed == 7 for p in new)
        left = N - len(seen)
        mine = [-(-(left - i) // after) for i in range(after)]  # they take turns
        for p, want in zip(new, mine):
            while want > 0:
                seen += labels(p)[:want]
                want -= BATCH
        assert Counter(seen) == Counter(range(N)), f"step {step}"


@pytest.mark.parametrize("way", ["random_shuffle", "sticking", "global"])
def test_shards_with_seeds_of_their_own(files, way):
    """With `seed=12 + rank`, the checkpoints of all shards are needed."""
    old = shards(files, 3, seeds=[12, 13, 14], **WAYS[way])
    if way == "random_shuffle":
        assert len({tuple(labels(p)) for p in shards(files, 3, seeds=[12, 13, 14], **WAYS[way])}) == 3
    seen = [x for _ in range(2) for p in old for x in labels(p)]
    saved = [p.checkpoint() for p in old]
    new = shards(files, 2, checkpoint=saved[1:] + saved[:1], **WAYS[way])
    assert [p.seed for p in new] == [13, 13]
    again = [p.checkpoint() for p in new]  # of those that went on, and then by four
    first, second = labels(new[0]), labels(new[1])
    seen += first + second
    newer = shards(files, 4, checkpoint=new[0].checkpoint(), **WAYS[way])
    left = N - len(seen)
    for i, p in enumerate(newer):
        seen += labels(p)[: -(-(left - i) // 4)]
    assert Counter(seen) == Counter(range(N))
    same = shards(files, 2, checkpoint=again[0], **WAYS[way])
    assert [labels(p) for p in same] == [first, second]


def test_the_epochs_that_follow_are_whole(files):
    old = shards(files, 3, seeds=[7] * 3, **WAYS["random_shuffle"])
    seen = [x for p in old for x in labels(p)]
    new = shards(files, 2, checkpoint=old[0].checkpoint(), **WAYS["random_shuffle"])
    both = [[x for _ in range(-(-3 * N // 2 // BATCH)) for x in labels(p)] for p in new]
    left = N - len(seen)
    for i, stream in enumerate(both):
        mine = -(-(left - i) // 2)
        seen += stream[:mine]
        del stream[:mine]
    assert Counter(seen) == Counter(range(N))
    # Epoch 1: shard 0 has part 1 and shard 1 part 0, of 15 and 14 samples.
    assert Counter(both[0][:15] + both[1][:14]) == Counter(range(N))
    assert both[0][:15] != sorted(both[0][:15])


def test_what_does_not_fit_is_told(files):
    way = WAYS["random_shuffle"]
    old = shards(files, 3, seeds=[12, 13, 14], **way)
    saved = [p.checkpoint() for p in old]
    for wrong, n, text in [
        (saved[:2], 2, "of 3 shards the checkpoints of all are needed, each once; got those of shards 0, 1"),
        (saved[:2] + saved[:1], 2, "got those of shards 0, 1, 0"),
        (saved, 3, "there are 3 shards, as before; give each its own checkpoint"),
        ([], 2, "this is an empty list"),
        ([saved[0], "{}", saved[2]], 2, "this is other JSON"),
    ]:
        with pytest.raises(ValueError, match=text):
            shards(files, n, checkpoint=wrong, **way)[0].build()
    old[2].run()
    with pytest.raises(ValueError, match="of different moments"):
        shards(files, 2, checkpoint=[*saved[:2], old[2].checkpoint()], **way)[0].build()
    with pytest.raises(ValueError, match="initial_fill is 6 here, 5 in the checkpoint"):
        shards(files, 2, checkpoint=saved, random_shuffle=True, initial_fill=6)[0].build()
