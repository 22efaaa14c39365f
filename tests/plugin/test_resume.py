# SPDX-License-Identifier: Apache-2.0
"""Iterators over pipelines resumed from checkpoints continue at the iterator's position, with the same epochs."""

import itertools

import pytest

from penstock import fn, pipeline_def
from penstock.plugin.base_iterator import DaliIterator

N = 23


class Labels(DaliIterator):
    def _convert(self, batches):
        return [b.outputs[0].as_array().ravel()[: b.keep].tolist() for b in batches]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    root = tmp_path_factory.mktemp("files")
    for i in range(N):
        (root / f"{i:02}").write_bytes(b"x")
    return [str(root / f"{i:02}") for i in range(N)]


def make(files, policy, checkpoints=None, shards=2, mine=(0, 1), size=None, **options):
    reader = {"num_shards": shards, **options.pop("reader", {})}

    @pipeline_def(batch_size=4, num_threads=1, seed=1, enable_checkpointing=True)
    def pipe(shard):
        return fn.readers.file(files=files, name="reader", shard_id=shard, **reader)[1]

    pipes = [pipe(s, checkpoint=checkpoints[i] if checkpoints else None) for i, s in enumerate(mine)]
    length = {"reader_name": "reader"} if size is None else {"size": size}
    return Labels(pipes, ["label"], last_batch_policy=policy, **length, **options)


def events(iterator, n):
    """The next n events: batches, and ends of epochs."""
    for _ in range(n):
        try:
            yield next(iterator), len(iterator)
        except StopIteration:
            iterator.reset()
            yield "end", len(iterator)


@pytest.mark.parametrize("first", [True, False], ids=["prepared", "not prepared"])
@pytest.mark.parametrize("auto_reset", [True, False])
@pytest.mark.parametrize(
    "reader",
    [{}, {"shuffle": "global"}, {"random_shuffle": True, "pad_last_batch": True}],
    ids=["", "global", "padded"],
)
@pytest.mark.parametrize("policy", ["fill", "drop", "partial"])
def test_from_every_step(files, policy, reader, auto_reset, first):
    options = {"reader": reader, "auto_reset": auto_reset, "prepare_first_batch": first}
    whole, saved = make(files, policy, **options), []
    happened = []
    for _ in range(11):
        saved.append(whole.checkpoints())
        happened += events(whole, 1)
    for step, checkpoints in enumerate(saved):
        if auto_reset and step and happened[step - 1] == "end":
            continue
        other = make(files, policy, checkpoints, **options)
        assert list(events(other, 11 - step)) == happened[step:], f"from step {step}"


@pytest.mark.parametrize("policy", ["fill", "drop", "partial"])
def test_with_a_size(files, policy):
    whole = make(files, policy, size=30)
    saved, happened = [], []
    for _ in range(9):
        saved.append(whole.checkpoints())
        happened += events(whole, 1)
    for step, checkpoints in enumerate(saved):
        assert list(events(make(files, policy, checkpoints, size=30), 9 - step)) == happened[step:]


@pytest.mark.parametrize("before, after", [(1, 3), (2, 1), (3, 2)])
def test_another_number_of_shards_sees_the_rest_of_the_epoch(files, before, after):
    reader = {"shuffle": "global", "pad_last_batch": True}
    whole = make(files, "partial", shards=before, mine=range(before), reader=reader)
    seen = [batch for batch, _ in events(whole, 2 if before < 3 else 1)]
    saved = whole.checkpoints()
    rest = make(files, "partial", saved[:1] * after, shards=after, mine=range(after), reader=reader)
    batches = list(rest)
    assert sorted(itertools.chain(*itertools.chain(*seen, *batches))) == list(range(N))
    assert len(batches) == len(rest)
    rest.reset()
    assert sorted(itertools.chain(*itertools.chain(*rest))) == list(range(N))


def test_checkpoints_of_different_moments_and_iterators(files):
    it = make(files, "fill")
    first = it.checkpoints()
    next(it)
    with pytest.raises(ValueError, match="different moments"):
        make(files, "fill", [first[0], it.checkpoints()[1]])
    with pytest.raises(ValueError, match="with policy=FILL, this one has DROP"):
        make(files, "drop", first)
    with pytest.raises(ValueError, match="with a size, and this one has a reader_name, or the reverse"):
        make(files, "fill", first, size=30)
