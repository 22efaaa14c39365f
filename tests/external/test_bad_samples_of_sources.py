# SPDX-License-Identifier: Apache-2.0
"""Bad samples of a source, retried calls, and the last samples of an epoch."""

import os
import re
import time
import warnings

import numpy as np
import pytest
import sources
from sources import METHODS, values

from penstock import PipelineError, fn, pipeline_def

HERE = [None, "background", *METHODS]
everywhere = pytest.mark.parametrize("method", HERE)


def build(source, method, n_outputs=None, batch_size=4, on_error="skip", max_errors=None, **kwargs):
    if method == "background":
        kwargs["background"] = True
    kwargs |= {"batch": False, "parallel": method in METHODS}
    pipe_args = {"on_error": on_error, "max_errors": max_errors}
    method = method if method in METHODS else "fork"
    return sources.build(source, method, 2, batch_size, n_outputs, pipe_args, **kwargs)


def of_three(info):
    """Every third sample is bad; 11 samples."""
    i = info.idx_in_epoch
    if i >= 11:
        raise StopIteration
    if i % 3 == 1:
        raise OSError(f"503 for {i}")
    return np.full(i + 1, i, np.int32)


def scalars(info):
    if info.idx_in_epoch in (2, 3, 9):
        return None
    return np.int64(info.idx_in_epoch)


def pairs(info):
    if info.idx_in_epoch % 4 == 2:
        raise KeyError("gone")
    return np.int32([info.idx_in_epoch]), np.float32(info.idx_in_epoch / 2)


def all_bad(info):
    raise RuntimeError("nothing is right")


@everywhere
def test_bad_samples_are_left_out_and_listed(method):
    pipe = build(of_three, method, last_batch="partial")
    for _ in range(2):
        assert [[v[0] for v in values(pipe.run())] for _ in range(3)] == [[0, 2, 3], [5, 6], [8, 9]]
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()
    told = [e for e in pipe.errors() if "epoch 0" in e.source]
    assert [e.reason.partition(" (")[0] for e in told] == [f"OSError: 503 for {i}" for i in (1, 4, 7, 10)]
    assert all(re.search(r" \(test_bad_samples_of_sources.py, line \d+, in of_three\)$", e.reason) for e in told)
    assert [(e.iteration, e.sample, e.action) for e in told] == [
        (0, 1, "skip"),
        (1, 0, "skip"),
        (1, 3, "skip"),
        (2, 2, "skip"),
    ]
    assert told[1].source.startswith("idx_in_epoch 4 of epoch 0, by of_three (test_bad_samples_of_sources.py:")


@everywhere
def test_the_next_sample_of_the_batch_stands_in(method):
    pipe = build(scalars, method, on_error="replace")
    assert [values(pipe.run()) for _ in range(3)] == [[0, 1, 0, 0], [4, 5, 6, 7], [8, 10, 10, 11]]
    assert [e.reason[:20] for e in pipe.errors()] == ["the source gave None"] * 3


@everywhere
def test_several_outputs_lose_the_same_sample(method):
    a, b = build(pairs, method, 2).run()
    assert a.as_array().tolist() == [[0], [1], [3]] and b.as_array().tolist() == [0, 0.5, 1.5]
    a, b = build(pairs, method, 2, on_error="replace").run()
    assert a.as_array().tolist() == [[0], [1], [3], [3]] and b.as_array().tolist() == [0, 0.5, 1.5, 1.5]


@everywhere
def test_by_default_the_exception_of_the_source_is_raised(method):
    with pytest.raises((OSError, PipelineError), match="503 for 1"):
        build(of_three, method, on_error="raise").run()


@everywhere
def test_too_many_bad_samples(method):
    pipe = build(of_three, method, max_errors=2)
    with pytest.raises(PipelineError, match=r"more than max_errors=2 allows(?s:.*)OSError: 503 for 4"):
        for _ in range(3):
            pipe.run()


def test_a_source_that_is_wrong_altogether_is_told():
    pipe = build(all_bad, None, batch_size=100)
    with pytest.raises(PipelineError, match=r"none of the last 1000 samples could be made; (?s:.*)nothing is right"):
        for _ in range(20):
            assert len(pipe.run()[0]) == 0
    with pytest.raises(PipelineError, match="can't supply another sample"):
        build(all_bad, None, on_error="replace").run()


def test_a_batch_of_bad_samples_has_the_type_and_dimensions_of_the_others():
    def source(info):
        if info.iteration == 1:
            raise ValueError("bad")
        return np.zeros((2, 3), np.int16)

    pipe = build(source, None)
    (good,), (none,) = pipe.run(), pipe.run()
    assert len(none) == 0 and none.dtype == good.dtype and len(pipe.run()[0]) == 4


def test_good_samples_go_on_to_other_operators():
    @pipeline_def(batch_size=4, on_error="replace", num_threads=2)
    def pipe():
        x = fn.external_source(source=of_three, batch=False)
        return x, fn.pad(x, fill_value=-1), fn.cast(fn.reductions.sum(x), dtype=fn_types.INT32)

    from penstock import types as fn_types

    x, padded, total = pipe().run()
    assert values((x,)) == [[0], [2, 2, 2], [2, 2, 2], [3, 3, 3, 3]]
    assert padded.as_array().tolist() == [[0, -1, -1, -1], [2, 2, 2, -1], [2, 2, 2, -1], [3, 3, 3, 3]]
    assert total.as_array().ravel().tolist() == [0, 6, 6, 12]


# Calls that take too long, or end the worker ------------------------------------------------------------------------


def hangs(info):
    if info.idx_in_epoch == 2:
        time.sleep(30)
    return np.int32(info.idx_in_epoch)


def dies(info):
    if info.idx_in_epoch in (2, 5):
        os._exit(7)
    return np.int32(info.idx_in_epoch)


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_that_takes_too_long_is_left_out(method):
    pipe = build(hangs, method, timeout=0.5)
    begin = time.monotonic()
    assert [values(pipe.run()) for _ in range(2)] == [[0, 1, 3], [4, 5, 6, 7]]
    assert time.monotonic() - begin < 28  # it would have slept for 30
    (error,) = pipe.errors()
    assert "took longer than timeout=0.5 s" in error.reason and error.sample == 2


@pytest.mark.parametrize("method", sources.PROCESSES)
def test_a_sample_that_ends_its_worker_is_left_out(method):
    pipe = build(dies, method)
    assert [values(pipe.run()) for _ in range(3)] == [[0, 1, 3], [4, 6, 7], [8, 9, 10, 11]]
    assert all("ended with exit code 7" in e.reason for e in pipe.errors()) and len(pipe.errors()) == 2


# Retries ------------------------------------------------------------------------------------------------------------


class Flaky:
    """Each sample fails `times` times."""

    def __init__(self, folder, times):
        self.folder, self.times = folder, times

    def __call__(self, info):
        with open(os.path.join(self.folder, str(info.idx_in_epoch)), "ab") as f:
            f.write(b".")
            if f.tell() <= self.times:
                raise ConnectionError("503")
        return np.int32(info.idx_in_epoch)


@everywhere
def test_calls_are_repeated(method, tmp_path):
    pipe = build(Flaky(tmp_path, 1), method, on_error="raise", retries=1, batch_size=2)
    assert values(pipe.run()) == [0, 1] and not pipe.errors()


def test_no_more_often_than_asked_for(tmp_path):
    pipe = build(Flaky(tmp_path, 3), None, on_error="skip", retries=2, batch_size=2)
    begin = time.monotonic()
    assert len(pipe.run()[0]) == 0
    assert time.monotonic() - begin > 2 * (0.1 + 0.2) and (tmp_path / "0").read_bytes()[:3] == b"..."
    assert [e.reason.partition(" (")[0] for e in pipe.errors()[:2]] == ["ConnectionError: 503"] * 2


def test_whole_batches_are_asked_for_again():
    calls = []

    def source(i):
        calls.append(i)
        if len(calls) == 1:
            raise ConnectionError("503")
        return np.zeros((2, 3), np.uint8)

    @pipeline_def(batch_size=2, prefetch_queue_depth=1)
    def pipe():
        return fn.external_source(source=source, retries=1)

    assert len(pipe().run()[0]) == 2 and calls[:2] == [0, 0]


# The last batch -----------------------------------------------------------------------------------------------------


def eleven(info):
    if info.idx_in_epoch >= 11:
        raise StopIteration
    return np.int32(info.idx_in_epoch)


@everywhere
@pytest.mark.parametrize("last_batch", [None, "drop", "partial"])
def test_the_last_batch(method, last_batch):
    pipe = build(eleven, method, on_error="raise", **({"last_batch": last_batch} if last_batch else {}))
    expected = [[0, 1, 2, 3], [4, 5, 6, 7]] + [[8, 9, 10]] * (last_batch == "partial")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert sources.epochs(pipe, 3) == [expected] * 3
    told = [str(w.message) for w in told if "don't fill a batch" in str(w.message)]
    assert len(told) == (last_batch is None)
    if told:
        assert (
            told[0].startswith("eleven (test_bad_samples_of_sources.py:")
            and "ended after 11 samples; the last 3" in told[0]
        )


def test_iterables_keep_their_last_samples_too():
    @pipeline_def(batch_size=4)
    def pipe():
        data = [np.int32([i]) for i in range(6)]
        return fn.external_source(source=data, batch=False, cycle="raise", last_batch="partial")

    assert sources.epochs(pipe(), 2) == [[[[0], [1], [2], [3]], [[4], [5]]]] * 2


@pytest.mark.parametrize("last_batch, n", [("drop", 2), ("partial", 3)])
def test_the_length_of_an_iterator_is_what_arrives(last_batch, n):
    pytest.importorskip("torch")
    from penstock.plugin.pytorch import DALIGenericIterator

    pipe = build(eleven, None, on_error="raise", last_batch=last_batch)
    it = DALIGenericIterator(pipe, ["x"], size=11, last_batch_policy="partial", auto_reset=True)
    for _ in range(3):
        batches = [b[0]["x"].tolist() for b in it]
        assert len(batches) == n == len(it)
    assert sum(batches, []) == list(range(11 if n == 3 else 8))


# Arguments ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, kwargs, told",
    [
        (eleven, {"batch": False, "last_batch": "keep"}, "last_batch takes 'drop' or 'partial'; got 'keep'"),
        (eleven, {"last_batch": "drop"}, "last_batch is for sources with batch=False"),
        (eleven, {"retries": -1}, "retries takes the number of times"),
        ([1], {"retries": 1}, "what is iterated can't be asked again"),
        (eleven, {"timeout": 1}, "timeout needs parallel=True"),
    ],
)
def test_arguments_that_do_not_go_together(source, kwargs, told):
    with pytest.raises(ValueError, match=told):

        @pipeline_def(batch_size=2)
        def pipe():
            return fn.external_source(source=source, **kwargs)

        pipe()
