# SPDX-License-Identifier: Apache-2.0
"""Batches of samples of similar length: what is in them, epochs, shards, resuming, and where lengths come from."""

import json
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_order import numbers, pipeline, run, take
from scipy import stats

from penstock import fn, pipeline_def

LENGTHS = np.random.default_rng(0).permutation(97).astype("f8") ** 2


def shards(n, batch, lengths=LENGTHS, **kwargs):
    kwargs = {"shuffle": "global", **kwargs}
    return [
        numbers(len(lengths), batch=batch, num_shards=n, shard_id=s, batch_by_length=lengths, **kwargs)
        for s in range(n)
    ]


def steps_of_epoch(size, n, batch):
    return -(-size // (n * batch))


def range_of_rank(size, run, num_buckets):
    """(size,) the range of lengths of each sample, from the shortest to the longest: whole runs of one batch of each
    shard, shared out evenly; the last takes the rest."""
    full = size // run
    buckets = max(min(num_buckets, full), 1)
    of_run = [max(b for b in range(buckets) if b * full // buckets <= r) for r in range(full)] or [0]
    return np.array([of_run[min(i // run, len(of_run) - 1)] for i in range(size)])


@given(
    size=st.integers(1, 90),
    n=st.integers(1, 4),
    batch=st.integers(1, 7),
    num_buckets=st.integers(1, 12),
    seed=st.integers(0, 99),
    shuffle=st.sampled_from([None, "global"]),
)
@settings(deadline=None, max_examples=150)
def test_epochs_have_each_sample_once_in_batches_of_one_range(size, n, batch, num_buckets, seed, shuffle):
    if size < n:
        return
    lengths = LENGTHS[:size]
    sources = shards(n, batch, lengths, num_buckets=num_buckets, own_seed=seed, shuffle=shuffle)
    rank = np.argsort(np.argsort(lengths, kind="stable"), kind="stable")
    ranges = range_of_rank(size, n * batch, num_buckets)
    for epoch in range(3):
        seen = []
        for _ in range(steps_of_epoch(size, n, batch)):
            picks = [s.take(batch, 0) for s in sources]
            of_step = []
            for p, s in zip(picks, range(n)):
                assert (p.place == epoch).all()
                mine = -(-(size - s) // n) if size % n == 0 else len(range(s * size // n, (s + 1) * size // n))
                own = p.offset < mine  # the rest is padding
                assert len(set(p.index[~own].tolist())) <= 1
                of_step += p.index[own].tolist()
            if shuffle == "global" and size // (n * batch):
                assert len(set(ranges[rank[of_step]])) <= 1
            if shuffle is None:
                assert sorted(rank[of_step]) == list(range(len(seen), len(seen) + len(of_step)))
            seen += of_step
        assert sorted(seen) == list(range(size))


def test_padding_is_small():
    """The share of padding in padded batches, compared with random batches."""
    lengths = np.random.default_rng(1).gamma(2.0, 5.0, 5000)

    def waste(source):
        of_batch = [lengths[take(source, 16)] for _ in range(300)]
        return 1 - sum(x.sum() for x in of_batch) / sum(16 * x.max() for x in of_batch)

    assert waste(numbers(5000, shuffle="global")) > 0.5
    assert waste(shards(1, 16, lengths)[0]) < 0.1
    assert waste(shards(1, 16, lengths, num_buckets=100)[0]) < 0.05


def test_batches_come_in_random_order_and_of_random_samples():
    """The seeds are fixed, so the result never changes."""
    lengths = np.arange(24.0)
    (source,) = shards(1, 4, lengths, num_buckets=3)  # ranges of 8 samples, of two batches each
    epochs = [np.array([take(source, 4) for _ in range(6)]) for _ in range(3000)]
    first_range = np.bincount([e[0, 0] // 8 for e in epochs], minlength=3)
    assert stats.chisquare(first_range).pvalue > 1e-3
    place_of_0 = np.bincount([int(np.argmax((e == 0).any(axis=1))) for e in epochs], minlength=6)
    assert stats.chisquare(place_of_0).pvalue > 1e-3
    with_0 = [e[(e == 0).any(axis=1)][0] for e in epochs]
    companions = np.bincount([i for b in with_0 for i in b if i], minlength=8)[1:]
    assert len(companions) == 7 and stats.chisquare(companions).pvalue > 1e-3


def test_draws_and_seeds():
    one, same, other = (shards(1, 8, own_seed=s)[0] for s in (1, 1, 2))
    a, b, c = (take(s, 97) for s in (one, same, other))
    assert a == b != c and sorted(a[:96] + a[96:]) == sorted(c)
    picks = shards(1, 8)[0].take(8, 0)
    assert picks.position.tolist() == picks.index.tolist()  # random numbers belong to the sample


@pytest.mark.parametrize("shuffle", [None, "global"])
@given(before=st.integers(0, 30), counts=st.lists(st.integers(1, 4), min_size=2, max_size=4), batch=st.integers(1, 6))
@settings(deadline=None, max_examples=60)
def test_going_on_with_other_shards(shuffle, before, counts, batch):
    """Together, the shards read each sample exactly once per epoch."""
    seen, state, size = {}, None, 41
    for n in counts:
        sources = shards(n, batch, LENGTHS[:size], own_seed=5, shuffle=shuffle)
        for s in sources:
            if state is not None:
                s.resume(state)
            for _ in range(before // n):
                p = s.take(batch, 0)
                mine = p.position < size  # a repeated sample has a position beyond
                for e, i in zip(p.epoch[mine].tolist(), p.index[mine].tolist()):
                    seen.setdefault(e, []).append(i)
        state = sources[-1].saved()
    for e, of_epoch in seen.items():
        assert len(set(of_epoch)) == len(of_epoch), f"epoch {e} has samples twice"
        if e < min(s.epoch for s in sources):
            assert sorted(of_epoch) == list(range(size))
    # After what was left over, epochs are those of a run that always had so many shards.
    epoch = max(max(s.epoch, s.order.first) for s in sources) + 1
    for resumed, other in zip(sources, shards(n, batch, LENGTHS[:size], own_seed=5, shuffle=shuffle)):
        assert batches_of(resumed, epoch, batch) == batches_of(other, epoch, batch)


def batches_of(source, epoch, batch):
    while source.epoch < epoch:
        source.take(batch, 0)
    got = [source.take(batch, 0)]
    while source.epoch == epoch:
        got.append(source.take(batch, 0))
    return [p.index.tolist() for p in got]


def test_resuming_threads_and_batch_size(tmp_path):
    files = files_of(tmp_path, range(1, 31))
    way = {"batch_by_length": True, "shuffle": "global", "num_buckets": 4}
    whole = run(pipeline(files, 4, **way), 20)
    assert whole == run(pipeline(files, 4, num_threads=3, depth=3, **way), 20)
    assert whole != run(pipeline(files, 4, seed=2, **way), 20)

    @pipeline_def(seed=1, enable_checkpointing=True)
    def pipe():
        return fn.readers.file(files=files, **way)[1]

    begun = pipe(batch_size=4)
    assert run(begun, 5) == whole[:5]
    assert run(pipe(batch_size=4, checkpoint=begun.checkpoint()), 15) == whole[5:]
    for changed in ({"num_buckets": 5}, {"batch_by_length": np.arange(30)}):
        way.update(changed)
        with pytest.raises((ValueError, RuntimeError), match="checkpoint"):
            pipe(batch_size=4, checkpoint=begun.checkpoint()).run()
    way.update(num_buckets=4, batch_by_length=True)
    with pytest.raises((ValueError, RuntimeError), match="checkpoint"):
        pipe(batch_size=5, checkpoint=begun.checkpoint()).run()


def files_of(folder, sizes):
    paths = []
    for i, size in enumerate(sizes):
        paths.append(str(folder / f"{i:03}.bin"))
        (folder / f"{i:03}.bin").write_bytes(b"x" * size)
    return paths


def test_sizes_of_files(tmp_path):
    sizes = [700, 20, 333, 5, 90, 5000, 41, 42]
    files = files_of(tmp_path, sizes)
    got = run(pipeline(files, 4, batch_by_length=True), 3)
    assert got[:2] == [[3, 1, 6, 7], [4, 2, 0, 5]] and got[2] == got[0]


def test_the_epoch_ends_with_whole_batches(tmp_path):
    files = files_of(tmp_path, [5, 4, 3, 2, 1, 6])
    p = pipeline(files, 4, batch_by_length=True)
    assert run(p, 3) == [[4, 3, 2, 1], [0, 5, 5, 5], [4, 3, 2, 1]]
    meta = p.reader_meta("reader")
    assert meta["pad_last_batch"] == 1 and meta["epoch_size"] == 6


def test_sizes_of_records(tmp_path):
    import tarfile

    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for i, size in enumerate([3000, 10, 9000, 1200]):
            (tmp_path / f"{i}.bin").write_bytes(bytes([i]) * size)
            tar.add(tmp_path / f"{i}.bin", f"{i}.bin")

    @pipeline_def(batch_size=4)
    def pipe():
        return fn.readers.webdataset(paths=[str(tmp_path / "a.tar")], ext=["bin"], batch_by_length=True)

    (out,) = pipe().run()
    assert [len(out.at(i)) for i in range(4)] == [10, 1200, 3000, 9000]


def manifest(folder, durations):
    with wave.open(str(folder / "a.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 8000))
    lines = []
    for d in durations:
        entry = {"audio_filepath": str(folder / "a.wav")}
        lines.append(json.dumps(entry if d is None else {**entry, "duration": d}))
    (folder / "train.json").write_text("\n".join(lines))
    return [str(folder / "train.json")]


def test_durations_of_manifests(tmp_path):
    path = manifest(tmp_path, [0.5, 0.125, 0.75, 0.25])

    @pipeline_def(batch_size=4)
    def pipe():
        return fn.readers.nemo_asr(
            manifest_filepaths=path, batch_by_length=True, read_text=False, read_sample_rate=False
        )

    (out,) = pipe().run()
    assert [len(out.at(i)) for i in range(4)] == [1000, 2000, 4000, 6000]


def test_a_manifest_without_durations(tmp_path):
    path = manifest(tmp_path, [0.5, None, 0.25, None])

    @pipeline_def(batch_size=4)
    def pipe():
        return fn.readers.nemo_asr(manifest_filepaths=path, batch_by_length=True)[0]

    with pytest.raises(
        (ValueError, RuntimeError), match=r"2 of 4 entries have no duration, the first of them .*entry 1"
    ):
        pipe().build()


def test_a_bad_sample_is_replaced_by_one_of_similar_length(tmp_path):
    files = files_of(tmp_path, [10, 20, 30, 40, 1000, 1010, 1020, 1030])
    (tmp_path / "001.bin").unlink()  # counts as empty, and so comes first

    @pipeline_def(batch_size=4, on_error="replace")
    def pipe():
        return fn.readers.file(files=files, labels=list(range(8)), batch_by_length=True)[1]

    p = pipe()
    assert p.run()[0].as_array().ravel().tolist() == [0, 0, 2, 3]


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"batch_by_length": [1, 2]}, r"shape \(2,\), and there are 3 samples"),
        ({"batch_by_length": [1, -1, 2]}, "0 or more; sample 1 has -1"),
        ({"batch_by_length": [1, 1, float("nan")]}, "0 or more; sample 2 has nan"),
        ({"batch_by_length": "duration"}, "takes True or an array of numbers; got 'duration'"),
        ({"batch_by_length": True, "num_buckets": 0}, "num_buckets takes at least 1"),
        ({"num_buckets": 3}, "only together with 'batch_by_length'"),
        ({"num_buckets": 3, "batch_by_length": False}, "only together with 'batch_by_length'"),
        ({"batch_by_length": True, "random_shuffle": True}, "can't be used with random_shuffle; to shuffle, use"),
        ({"batch_by_length": True, "weights": [1, 2, 3]}, "can't be used with weights"),
    ],
    ids=str,
)
def test_errors(tmp_path, kwargs, error):
    files = files_of(tmp_path, [1, 2, 3])

    @pipeline_def(batch_size=1)
    def pipe():
        return fn.readers.file(files=files, **kwargs)[1]

    with pytest.raises((ValueError, RuntimeError), match=error):
        pipe().build()


def test_a_reader_that_knows_no_lengths():
    with pytest.raises(ValueError, match="does not know the lengths"):
        numbers(3, batch_by_length=True)
