# SPDX-License-Identifier: Apache-2.0
"""Running: the same batches with any prefetch depth, threads and way of running; epochs, resets, batch sizes."""

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types
from penstock.pipeline import Pipeline

FACES = list(itertools.product((1, 2, 3, 4), (True, False), (True, False)))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{i:02d}.bin" for i in range(10)]
    for i, p in enumerate(paths):
        p.write_bytes(bytes([i]) * (i + 1))
    return [str(p) for p in paths]


def reader(files, n=10, batch_size=4, **kwargs):
    reader_args = {
        k: kwargs.pop(k) for k in ("random_shuffle", "num_shards", "shard_id", "pad_last_batch") if k in kwargs
    }

    @pipeline_def(batch_size=batch_size, **kwargs)
    def pipe():
        return fn.readers.file(files=files[:n], labels=list(range(n)), name="Reader", **reader_args)

    return pipe()


def labels(outputs):
    return outputs[1].as_array().ravel().tolist()


def counter(**kwargs):
    return pipeline_def(lambda: fn.external_source(source=lambda i: np.int32([i, -i])), batch_size=2, **kwargs)()


@pytest.mark.parametrize(("depth", "pipelined", "is_async"), FACES)
def test_the_same_batches_however_they_are_made(files, depth, pipelined, is_async):
    pipe = reader(
        files, random_shuffle=True, seed=5, prefetch_queue_depth=depth, exec_pipelined=pipelined, exec_async=is_async
    )
    reference = reader(files, random_shuffle=True, seed=5, num_threads=1, exec_pipelined=False)
    for _ in range(8):
        a, b = pipe.run(), reference.run()
        assert labels(a) == labels(b) and [x.tobytes() for x in map(np.asarray, a[0])] == [
            x.tobytes() for x in map(np.asarray, b[0])
        ]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_same_batches_for_any_number_of_threads(files, threads):
    pipe, reference = (reader(files, random_shuffle=True, seed=5, num_threads=n) for n in (threads, 1))
    assert [labels(pipe.run()) for _ in range(6)] == [labels(reference.run()) for _ in range(6)]


def test_seeds(files):
    def order(seed):
        pipe = reader(files, random_shuffle=True, seed=seed)
        return [labels(pipe.run()) for _ in range(5)], pipe.seed

    assert order(5)[0] == order(5)[0] != order(6)[0]
    # Without a seed, one is drawn and available, so that the run can be repeated.
    batches, seed = order(None)
    assert batches == order(seed)[0] and seed >= 0
    assert order(-1)[1] != order(-1)[1]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_schedule_share_release(depth):
    """The first call fills the queue. Each further call requests one batch."""
    pipe = counter(prefetch_queue_depth=depth)
    assert pipe.empty()
    got = []
    pipe.schedule_run()
    for _ in range(5):
        got.append(pipe.share_outputs()[0].as_array()[0])
        pipe.release_outputs()
        pipe.schedule_run()
    rest = []
    while not pipe.empty():
        rest.append(pipe.outputs()[0].as_array()[0])
    assert got == list(range(5)) and rest == list(range(5, 5 + depth))
    with pytest.raises(StopIteration, match="schedule_run"):
        pipe.share_outputs()


def test_run_and_schedule_may_be_mixed():
    pipe = counter()
    pipe.schedule_run()
    assert [pipe.run()[0].as_array()[0], pipe.outputs()[0].as_array()[0], pipe.run()[0].as_array()[0]] == [0, 1, 2]


def test_batches_stay_as_they_are_after_release():
    pipe = counter()
    kept = [pipe.run()[0] for _ in range(10)]
    assert [k.as_array().tolist() for k in kept] == [[i, -i] for i in range(10)]


def test_batch_size_per_iteration(files):
    pipe = reader(files, exec_pipelined=False)
    sizes = [1, 4, 2, 3]
    got = []
    for n in sizes:
        pipe.set_batch_size(n)
        got.append(labels(pipe.run()))
    assert got == [[0], [1, 2, 3, 4], [5, 6], [7, 8, 9]]
    for wrong in (0, 5):
        with pytest.raises(ValueError, match="1 to 4"):
            pipe.set_batch_size(wrong)


def test_sources_decide_on_the_batch_size():
    pipe = pipeline_def(lambda: fn.external_source(source=[np.zeros((n, 3), "f4") for n in (4, 1, 3)]), batch_size=4)()
    assert [len(pipe.run()[0]) for _ in range(3)] == [4, 1, 3]
    pipe = pipeline_def(lambda: fn.external_source(source=[np.zeros((5, 3), "f4")]), batch_size=4)()
    with pytest.raises(PipelineError, match=r"batch of 5 samples.*at most 4"):
        pipe.run()


def test_epoch_size_and_reader_meta(files):
    pipe = reader(files, num_shards=3, shard_id=1, pad_last_batch=True)
    assert pipe.epoch_size() == {"Reader": 12} and pipe.epoch_size()["Reader"] == pipe.epoch_size("Reader") == 12
    want = {
        "epoch_size": 10,
        "epoch_size_padded": 12,
        "number_of_shards": 3,
        "shard_id": 1,
        "pad_last_batch": 1,
        "stick_to_shard": 0,
    }
    assert pipe.reader_meta("Reader") == want and pipe.reader_meta() == {"Reader": want}
    with pytest.raises(RuntimeError, match=r"no reader called 'reader'; it has \['Reader'\].*Did you mean 'Reader'"):
        pipe.epoch_size("reader")


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_reset_in_the_middle_of_an_epoch(files, depth):
    """Prefetched batches are dropped and count as not read."""
    pipe = reader(files, prefetch_queue_depth=depth, num_shards=2, shard_id=0)
    assert labels(pipe.run()) == [0, 1, 2, 3]
    pipe.reset()  # shard 0 is not finished: on to shard 1
    assert labels(pipe.run()) == [5, 6, 7, 8]
    pipe.reset()
    pipe.reset()  # nothing was read since
    assert labels(pipe.run()) == [0, 1, 2, 3]


def test_reset_at_the_end_of_an_epoch_goes_on(files):
    pipe = reader(files, n=8)
    for _ in range(3):
        assert [labels(pipe.run()) for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
        pipe.reset()


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("cycle", [None, "raise", "quiet", True])
def test_the_end_of_a_source(depth, cycle):
    source = [np.int32([i]) for i in range(3)]
    define = lambda: fn.external_source(source=source, cycle=cycle)  # noqa: E731
    pipe = pipeline_def(define, batch_size=1, prefetch_queue_depth=depth)()
    if cycle in ("quiet", True):
        assert [pipe.run()[0].at(0) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
        return
    for epoch in range(3):
        got = []
        with pytest.raises(StopIteration):
            while True:
                got.append(int(pipe.run()[0].at(0)))
        with pytest.raises(StopIteration):  # until reset
            pipe.run()
        assert got == ([0, 1, 2] if epoch == 0 or cycle == "raise" else [])
        pipe.reset()


def test_nothing_is_called_beyond_the_end():
    """A callable that raises StopIteration once per epoch is not called again before reset."""
    state = {"i": 0}

    def source():
        if state["i"] == 2:
            state["i"] = 0
            raise StopIteration
        state["i"] += 1
        return np.int32([state["i"]])

    pipe = pipeline_def(lambda: fn.external_source(source=source), batch_size=1, prefetch_queue_depth=4)()
    for _ in range(3):
        got = []
        with pytest.raises(StopIteration):
            while True:
                got.append(int(pipe.run()[0].at(0)))
        assert got == [1, 2]
        pipe.reset()


def test_an_error_in_a_source_does_not_end_the_pipeline():
    calls = iter([0, None, 2])

    def source():
        value = next(calls)
        if value is None:
            raise OSError("no such record")
        return np.int32([value])

    pipe = pipeline_def(lambda: fn.external_source(source=source), batch_size=1, prefetch_queue_depth=1)()
    assert pipe.run()[0].at(0) == 0
    with pytest.raises((OSError, PipelineError), match="no such record"):
        pipe.run()
    assert pipe.run()[0].at(0) == 2


def test_bad_samples_raise_and_the_pipeline_runs_on(files):
    pipe = reader([*files[:5], "/missing.bin", *files[6:]])
    assert labels(pipe.run()) == [0, 1, 2, 3]
    with pytest.raises(PipelineError, match="/missing.bin"):
        pipe.run()
    assert labels(pipe.run()) == [8, 9, 0, 1]


def test_which_samples_a_batch_has_left(files):
    pipe = reader([*files[:5], "/missing.bin", *files[6:]], on_error="skip")
    assert pipe.sample_indices() is None
    assert labels(pipe.run()) == [0, 1, 2, 3] and pipe.sample_indices().tolist() == [0, 1, 2, 3]
    assert labels(pipe.run()) == [4, 6, 7] and pipe.sample_indices().tolist() == [0, 2, 3]
    error = next(e for e in pipe.errors() if e.iteration == 1)
    assert error.sample == 1 and "/missing.bin" in error.source


def test_implicit_build_and_use_by_several_threads():
    """Each batch is returned once, whichever thread requests it."""
    pipe = counter()
    got, lock = [], threading.Lock()

    def work():
        for _ in range(10):
            with lock:
                got.append(int(pipe.run()[0].as_array()[0]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(got) == list(range(40))


def test_a_pipeline_that_is_dropped_ends_its_threads():
    gc.collect()
    before = threading.active_count()
    pipe = counter()
    pipe.run()
    ref = weakref.ref(pipe)
    del pipe
    gc.collect()
    assert ref() is None and threading.active_count() == before


def test_a_pipeline_that_waits_for_data_can_be_closed():
    pipe = pipeline_def(lambda: fn.external_source(name="x", blocking=True), batch_size=1)()
    pipe.schedule_run()
    pipe.close()


def test_num_outputs_and_properties():
    pipe = pipeline_def(lambda: (types.Constant(1), types.Constant(2)), batch_size=3, prefetch_queue_depth=3)()
    assert pipe.num_outputs == 2 and pipe.batch_size == pipe.max_batch_size == 3
    assert pipe.cpu_queue_size == pipe.gpu_queue_size == pipe.prefetch_queue_depth == 3
    assert pipe.exec_pipelined and pipe.exec_async and pipe.num_threads >= 1
    both = Pipeline(1, prefetch_queue_depth={"cpu_size": 4, "gpu_size": 1})
    assert both.prefetch_queue_depth == {"cpu_size": 4, "gpu_size": 1}
    assert (both.cpu_queue_size, both.gpu_queue_size) == (4, 1)
    assert [pipe.max_streams, pipe.enable_memory_stats, pipe.stream_policy, pipe.concurrency] == [
        None,
        False,
        None,
        None,
    ]
