# SPDX-License-Identifier: Apache-2.0
"""Sources are called by the thread that runs the pipeline, at the same time as in DALI; in the background if
requested."""

import threading

import numpy as np
import pytest

from penstock import Pipeline, fn, pipeline_def

BATCH = 2
DATA = [np.zeros(2, "f4")] * BATCH


class Log:
    """Calls since the last query; those in other threads are marked."""

    def __init__(self):
        self._main, self._calls = threading.get_ident(), []

    def __call__(self, what):
        self._calls.append(what if threading.get_ident() == self._main else f"thread {what}")

    def take(self):
        calls, self._calls = self._calls, []
        return calls


def library(name):
    if name == "penstock":
        return fn, pipeline_def, Pipeline
    pytest.importorskip("nvidia.dali")
    from nvidia.dali import fn as dali_fn
    from nvidia.dali import pipeline_def as dali_def
    from nvidia.dali.pipeline import Pipeline as DaliPipeline

    return dali_fn, dali_def, DaliPipeline


BOTH = pytest.mark.parametrize("lib", ["penstock", "dali"])


def moments(log, pipe, n):
    """Calls by `build` and each `run`, with `reset` after the end of an epoch."""
    pipe.build()
    seen = [log.take()]
    for _ in range(n):
        try:
            pipe.run()
            seen.append(log.take())
        except StopIteration:
            seen.append(["end", *log.take()])
            pipe.reset()
    return seen


def one_source(lib, source, pipe_args=None, **kwargs):
    fn, pipeline_def, _ = library(lib)

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, **(pipe_args or {}))
    def definition():
        return fn.external_source(source, **kwargs)

    return definition()


@BOTH
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_prefetching(lib, depth):
    log = Log()
    pipe = one_source(lib, lambda i: (log(i), DATA)[1], {"prefetch_queue_depth": depth})
    assert moments(log, pipe, 3) == [[], list(range(depth)), [depth], [depth + 1]]


@BOTH
def test_without_prefetching(lib):
    log = Log()
    pipe = one_source(lib, lambda i: (log(i), DATA)[1], {"exec_async": False, "exec_pipelined": False})
    assert moments(log, pipe, 3) == [[], [0], [1], [2]]


@BOTH
def test_several_sources_and_iter_setup(lib):
    fn, _, base = library(lib)
    log = Log()

    class Own(base):
        def iter_setup(self):
            log("setup")

    pipe = Own(BATCH, 1, None)
    with pipe:
        first = fn.external_source(lambda i: (log(f"b{i}"), DATA)[1])
        pipe.set_outputs(first, fn.external_source(lambda i: (log(f"a{i}"), DATA)[1]))
    seen = moments(log, pipe, 2)  # the order in which DALI calls sources differs between processes
    assert [c[0] for call in seen for c in call] in (list("bas" * 3), list("abs" * 3))
    assert [len(call) for call in seen] == [0, 6, 3]


@BOTH
def test_a_callable_that_ends(lib):
    log = Log()

    def source(i):
        log(i)
        if i >= 3:
            raise StopIteration
        return DATA

    epoch = [[0, 1], [2], [3], ["end"]]
    assert moments(log, one_source(lib, source), 9) == [[], *epoch, *epoch, [0, 1]]


@BOTH
def test_samples_one_by_one(lib):
    log = Log()

    def source(info):
        log((info.epoch_idx, info.idx_in_epoch))
        if info.idx_in_epoch >= 5:
            raise StopIteration
        return np.zeros(2, "f4")

    def epoch(e):
        return [[(e, i) for i in range(4)], [(e, 4), (e, 5)], ["end"]]

    assert moments(log, one_source(lib, source, batch=False), 6) == [[], *epoch(0), *epoch(1)]


@BOTH
@pytest.mark.parametrize("cycle", [None, "quiet", "raise"])
def test_iterables(lib, cycle):
    log = Log()

    class Source:
        def __iter__(self):
            log("begin")
            for i in range(3):
                log(i)
                yield DATA
            log("over")

    epoch = [["begin", 0, 1], [2], ["over"], ["end"]]
    want = {
        None: [*epoch, ["end"], ["end"]],
        "quiet": [["begin", 0, 1], [2], ["over", "begin", 0], [1], [2], ["over", "begin", 0]],
        "raise": [*epoch, ["begin", 0, 1], [2]],
    }[cycle]
    assert moments(log, one_source(lib, Source(), cycle=cycle), 6) == [[], *want]


@BOTH
def test_schedule_and_share(lib):
    log = Log()
    pipe = one_source(lib, lambda i: (log(i), DATA)[1])
    pipe.build()
    seen = []
    for call in ("schedule_run", "share_outputs", "release_outputs") * 2:
        getattr(pipe, call)()
        seen.append(log.take())
    assert seen == [[0, 1], [], [], [2], [], []]


@BOTH
def test_random_numbers_are_the_programs(lib):
    """A source and the program draw from the global generator in a fixed order."""
    pipe = one_source(lib, lambda i: [np.float32(np.random.rand())] * BATCH, {"prefetch_queue_depth": 1})
    pipe.build()
    np.random.seed(7)
    got = []
    for _ in range(3):
        (out,) = pipe.run()
        got += [float(np.asarray(out.at(0))), np.random.rand()]
    np.random.seed(7)
    np.testing.assert_allclose(got, np.random.rand(6), atol=1e-6)


@BOTH
def test_iterators(lib):
    pytest.importorskip("torch")
    if lib == "penstock":
        from penstock.plugin.pytorch import DALIGenericIterator
    else:
        library(lib)
        from nvidia.dali.plugin.pytorch import DALIGenericIterator
    log = Log()
    iterator = DALIGenericIterator(one_source(lib, lambda i: (log(i), DATA)[1]), ["x"])
    seen = [log.take()]
    for _ in range(4):
        next(iterator)
        seen.append(log.take())
    assert seen == [[0, 1, 2], [], [3], [4], [5]]


@BOTH
def test_an_error_comes_out_of_the_run_that_calls_the_source(lib):
    """With prefetching, before its batch would have been returned."""

    def source(i):
        if i == 1:
            raise KeyError("no such data")
        return [np.int32([i])] * BATCH

    pipe = one_source(lib, source)
    pipe.build()
    with pytest.raises(KeyError, match="no such data"):
        pipe.run()
    if lib == "penstock":  # DALI calls the source for the same batch forever
        assert [int(pipe.run()[0].at(0)[0]) for _ in range(3)] == [0, 2, 3]


def test_sources_stay_in_step_where_one_fails():
    def gives(fails_at):
        def source(i):
            if i == fails_at:
                raise OSError("the store is away")
            return [np.int32([i])] * BATCH

        return source

    for fails_at in ((2, None), (None, 2)):

        @pipeline_def(batch_size=BATCH, num_threads=1)
        def definition(places):
            return tuple(fn.external_source(gives(p)) for p in places)

        pipe = definition(fails_at)
        seen = []
        while len(seen) < 4:
            try:
                seen.append([int(o.at(0)[0]) for o in pipe.run()])
            except OSError:
                pass
        assert seen == [[i, i] for i in (0, 1, 3, 4)]


def test_an_interrupt_loses_nothing():
    stop = [False]

    def interrupted(i):
        if i == 2 and stop[0]:
            stop[0] = False
            raise KeyboardInterrupt
        return [np.int32([i])] * BATCH

    @pipeline_def(batch_size=BATCH, num_threads=1)
    def definition():
        return fn.external_source(iter([[np.int32([k])] * BATCH for k in range(9)])), fn.external_source(interrupted)

    pipe = definition()
    seen = [[int(o.at(0)[0]) for o in pipe.run()]]
    stop[0] = True
    with pytest.raises(KeyboardInterrupt):
        pipe.run()
    seen += [[int(o.at(0)[0]) for o in pipe.run()] for _ in range(4)]
    assert seen == [[i, i] for i in range(5)]


def test_in_the_background():
    log = Log()
    pipe = one_source("penstock", lambda i: (log(i), DATA)[1], background=True)
    for _ in range(4):
        pipe.run()
    assert "thread 0" in log.take()
    with pytest.raises(ValueError, match="background=True is for sources without parallel=True"):
        one_source("penstock", lambda i: DATA, background=True, parallel=True).build()


def test_checkpoints_are_of_the_batches_that_were_given_out():
    """Regardless of prefetching."""

    def make(**kwargs):
        class Source:
            def __iter__(self):
                return iter([[np.int32([k])] * BATCH for k in range(9)])

        @pipeline_def(batch_size=BATCH, num_threads=1, enable_checkpointing=True, prefetch_queue_depth=3, seed=1)
        def definition():
            return fn.external_source(Source()), fn.external_source(lambda i: [np.int32([i])] * BATCH)

        return definition(**kwargs)

    pipe = make()
    for _ in range(3):
        pipe.run()
    resumed = make(checkpoint=pipe.checkpoint())
    for p in (pipe, resumed):
        assert [[int(o.at(0)[0]) for o in p.run()] for _ in range(4)] == [[i, i] for i in range(3, 7)]
