# SPDX-License-Identifier: Apache-2.0
"""Resuming from a checkpoint of any step gives the same batches as without interruption; other input is refused."""

import json
import time

import numpy as np
import pytest

from penstock import Pipeline, PipelineError, fn, pipeline_def

N, BATCH = 23, 4
STEPS = 2 * -(-N // BATCH)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    root = tmp_path_factory.mktemp("files")
    for i in range(N):
        (root / f"{i:02}.bin").write_bytes(bytes([i]) * (i + 1))
    return [str(root / f"{i:02}.bin") for i in range(N)]


def reading(files, seed=5, depth=2, num_threads=1, batch_size=BATCH, checkpoint=None, **reader) -> Pipeline:
    @pipeline_def(
        batch_size=batch_size,
        num_threads=num_threads,
        prefetch_queue_depth=depth,
        seed=seed,
        enable_checkpointing=True,
        checkpoint=checkpoint,
    )
    def pipe():
        contents, labels = fn.readers.file(files=files, name="reader", **reader)
        noise = fn.random.uniform(range=[0.0, 1.0], shape=[3])
        return labels, noise, fn.random.coin_flip(), fn.random.normal(contents, dtype=None)

    return pipe()


def batches(pipe: Pipeline, n: int) -> list[list[np.ndarray]]:
    out = []
    for _ in range(n):
        try:
            out.append([np.array(t.at(i)) for t in pipe.run() for i in range(len(t))])
        except StopIteration:
            out.append([])
            pipe.reset()
    return out


def assert_same(got, want, what):
    assert len(got) == len(want)
    for step, (a, b) in enumerate(zip(got, want)):
        assert len(a) == len(b), f"{what}, {step} steps later"
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y, err_msg=f"{what}, {step} steps later")


READERS = {
    "in order": {},
    "random_shuffle": {"random_shuffle": True, "initial_fill": 6},
    "shuffle_after_epoch": {"shuffle_after_epoch": True},
    "global": {"shuffle": "global"},
    "padded": {"pad_last_batch": True, "num_shards": 3, "shard_id": 1},
    "rotating": {"num_shards": 3, "shard_id": 1},
    "global shard": {"shuffle": "global", "num_shards": 3, "shard_id": 2},
    "lazy": {"lazy_init": True},
}


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_from_every_step(files, reader, depth):
    pipe = reading(files, depth=depth, **reader)
    saved, whole = [pipe.checkpoint()], []
    for _ in range(STEPS):
        whole += batches(pipe, 1)
        saved.append(pipe.checkpoint())
    for step, checkpoint in enumerate(saved):
        other = reading(files, seed=-1, depth=depth % 3 + 1, num_threads=2, checkpoint=checkpoint, **reader)
        assert other.is_restored_from_checkpoint and other.seed == 5
        assert_same(batches(other, STEPS - step), whole[step:], f"from step {step}")


def test_of_one_that_went_on_itself(files):
    whole = batches(reading(files, shuffle="global"), 9)
    pipe, got = reading(files, shuffle="global"), []
    for _ in range(9):
        got += batches(pipe, 1)
        pipe = reading(files, checkpoint=pipe.checkpoint(), shuffle="global")
    assert_same(got, whole, "in nine pipelines")


def test_after_reset_in_mid_epoch_and_an_error(files):
    pipe = reading(files, random_shuffle=True)
    batches(pipe, 2)
    pipe.reset()
    saved = pipe.checkpoint()
    want = batches(pipe, 5)
    assert_same(batches(reading(files, random_shuffle=True, checkpoint=saved), 5), want, "after reset")

    broken = [*files[:5], "/nowhere/at/all", *files[6:]]
    pipe = reading(broken)
    batches(pipe, 1)
    with pytest.raises(PipelineError):
        pipe.run()
    saved = pipe.checkpoint()
    assert_same(batches(reading(broken, checkpoint=saved), 3), batches(pipe, 3), "behind a bad batch")


def test_without_a_reader_and_with_changing_batch_sizes():
    @pipeline_def(batch_size=5, num_threads=1, seed=3, enable_checkpointing=True)
    def pipe():
        return fn.random.uniform()

    a = pipe()
    for n in (5, 2, 4):
        a.set_batch_size(n)
        a.run()
    saved, want = a.checkpoint(), batches(a, 3)
    b = pipe(checkpoint=saved)
    b.set_batch_size(4)
    assert len(want[-1]) == 4
    # Prefetched batches have the batch size at the time of their request.
    for step, w in enumerate(want):
        b.set_batch_size(len(w))
        assert_same(batches(b, 1), [w], f"step {step}") if step == 0 else b.run()


# Sources of the user's -----------------------------------------------------------------------------------------------


class Counting:
    """An infinite iterable with a state."""

    def __init__(self):
        self.i = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.i += 1
        return np.full((2, 1), self.i, "i4")

    def state_dict(self):
        return {"i": self.i}

    def load_state_dict(self, state):
        self.i = state["i"]


def generator():
    for i in range(5):
        yield np.full((2, 1), i, "i4")


def by_sample(info):
    if info.iteration == 5:
        raise StopIteration
    return np.int32([info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx])


SOURCES = {
    "per sample": lambda: {"source": by_sample, "batch": False},
    "per batch": lambda: {"source": lambda b: np.int32([[b.iteration], [b.epoch_idx]]), "batch_info": True},
    "numbered": lambda: {"source": lambda i: np.full((2, 1), i, "i4")},
    "list": lambda: {"source": [np.full((2, 1), i, "i4") for i in range(5)], "cycle": True},
    "list that raises": lambda: {"source": [np.full((2, 1), i, "i4") for i in range(5)], "cycle": "raise"},
    "generator function": lambda: {"source": generator, "cycle": "quiet"},
    "state_dict": lambda: {"source": Counting()},
}


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_external_sources(source, depth):
    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=depth, seed=1, enable_checkpointing=True)
    def pipe():
        return fn.external_source(**source()), fn.random.uniform()

    a = pipe()
    saved, whole = [a.checkpoint()], []
    for _ in range(13):
        whole += batches(a, 1)
        saved.append(a.checkpoint())
    for step, checkpoint in enumerate(saved):
        b = pipe(checkpoint=checkpoint, prefetch_queue_depth=2)
        assert_same(batches(b, 13 - step), whole[step:], f"from step {step}")


def test_a_source_that_can_not_go_back_is_named():
    @pipeline_def(batch_size=2, num_threads=1, enable_checkpointing=True)
    def pipe():
        return fn.external_source(source=iter([np.zeros((2, 1))] * 9))

    with pytest.warns(UserWarning, match="fn.external_source`[^`]*position of this source can't be saved"):
        pipe().build()


def test_fed_data():
    @pipeline_def(batch_size=2, num_threads=1, seed=4, enable_checkpointing=True)
    def pipe():
        return fn.external_source(name="x"), fn.random.uniform()

    a = pipe()
    a.run(x=np.zeros((2, 1), "f4"))
    saved = a.checkpoint()
    want = a.run(x=np.ones((2, 1), "f4"))[1].as_array()
    np.testing.assert_array_equal(pipe(checkpoint=saved).run(x=np.ones((2, 1), "f4"))[1].as_array(), want)


# What is refused -----------------------------------------------------------------------------------------------------


def test_the_difference_is_named(files, tmp_path):
    saved = reading(files, random_shuffle=True).checkpoint()
    for change, text in {
        "seed": "seed: 6 here, 5 in the checkpoint",
        "random_shuffle": "source 'reader': random_shuffle is False here, True in the checkpoint",
        "initial_fill": "initial_fill is 7 here, 1024 in the checkpoint",
        "files": "samples is 22 here, 23 in the checkpoint",
        "order": "as many samples, but not the same ones",
    }.items():
        kwargs = {"random_shuffle": True} | {
            "seed": {"seed": 6},
            "random_shuffle": {"random_shuffle": False},
            "initial_fill": {"initial_fill": 7},
        }.get(change, {})
        listed = {"files": files[1:], "order": files[::-1]}.get(change, files)
        with pytest.raises(ValueError, match=text):
            reading(listed, checkpoint=saved, **kwargs).build()

    @pipeline_def(batch_size=2, seed=5, checkpoint=saved)
    def other():
        return fn.random.beta()

    with pytest.raises(
        ValueError, match=r"sources: none here, fn.readers.file in the checkpoint\n.*number 1 is fn.random.beta"
    ):
        other().build()


@pytest.mark.parametrize(
    "content, text",
    [
        (b"\x80\x04K\x01.", "is not JSON"),
        ("[1, 2]", "this is other JSON"),
        ('{"penstock checkpoint": 99, "version": "7.0"}', "has format 99, .* written by penstock 7.0"),
        ('{"penstock checkpoint": 1, "seed": 1}', "damaged: 'iteration' is None"),
        (7, "not JSON"),
    ],
)
def test_what_is_no_checkpoint(content, text):
    with pytest.raises(ValueError, match=text):
        Pipeline(1, checkpoint=content)


def test_damaged_state(files):
    content = json.loads(reading(files).checkpoint())
    del content["sources"][0]["state"]["offset"]
    with pytest.raises(ValueError, match="the checkpoint can't be restored: its state lacks 'offset'"):
        reading(files, checkpoint=json.dumps(content)).build()


def test_it_has_to_be_enabled():
    @pipeline_def(batch_size=2)
    def pipe():
        return fn.random.uniform()

    with pytest.raises(RuntimeError, match="enable_checkpointing=True"):
        pipe().checkpoint()


def test_file_and_form(files, tmp_path):
    pipe = reading(files)
    pipe.run()
    saved = pipe.checkpoint(tmp_path / "saved.json")
    assert (tmp_path / "saved.json").read_bytes() == saved
    assert json.loads(saved)["penstock checkpoint"] == 1 and json.loads(saved)["iteration"] == 1
    assert_same(batches(reading(files, checkpoint=saved.decode()), 2), batches(pipe, 2), "as text")


def test_small_and_quick(tmp_path):
    """For 1.3 million samples, below 10 KB and 1 ms of processor time (not wall time, as the machine may be busy)."""
    (tmp_path / "one").write_bytes(b"1")
    pipe = reading([str(tmp_path / "one")] * 1_300_000, shuffle="global", num_shards=8, shard_id=3)
    pipe.run()
    times = []
    for _ in range(20):
        begin = time.thread_time()
        saved = pipe.checkpoint()
        times.append(time.thread_time() - begin)
    assert len(saved) < 10_000
    assert min(times) < 1e-3
