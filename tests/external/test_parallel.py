# SPDX-License-Identifier: Apache-2.0
"""Sources called by workers: data, order, and errors."""

import time

import numpy as np
import pytest
import sources
from sources import METHODS, PROCESSES, build, epochs, values

from penstock import PipelineError, fn, pipeline_def, types

methods = pytest.mark.parametrize("method", METHODS)
processes = pytest.mark.parametrize("method", PROCESSES)


@methods
def test_samples_come_in_order_with_their_infos(method):
    pipe = build(sources.numbered, method)
    got = [s for _ in range(5) for s in values(pipe.run())]
    assert got == [[i, i % 4, i // 4, 0] for i in range(20)]


@methods
def test_stop_iteration_ends_each_epoch(method):
    got = epochs(build(sources.ten, method), 3)
    assert got == [[[[i, e] for i in range(b, b + 4)] for b in (0, 4)] for e in range(3)]


@pytest.mark.parametrize("workers", [1, 3, 5])
def test_order_does_not_depend_on_who_is_quick(workers):
    pipe = build(sources.uneven, workers=workers, batch_size=7, prefetch_queue_depth=3)
    assert [i for _ in range(6) for (i,) in values(pipe.run())] == list(range(42))


@methods
def test_sizes_that_vary_and_several_outputs(method):
    pipe = build(sources.growing, method, n_outputs=2, batch_size=3)
    held = [pipe.run() for _ in range(8)]  # all kept: no memory is reused
    for b, (x, y) in enumerate(held):
        for k in range(3):
            i = 3 * b + k
            assert x.at(k).shape == (i * i * 7 + 1, 3) and (x.at(k) == i % 251).all()
            assert np.array(y.at(k)).tolist() == [float(i)] * (i % 3)


def test_samples_of_one_size_arrive_as_one_array_without_a_copy():
    pipe = build(sources.dense, batch_size=8)
    for b in range(12):
        (out,) = pipe.run()
        if b >= 4:  # by then the size is known
            tensors = [out[i] for i in range(8)]
            first = tensors[0].data_ptr()
            assert [t.data_ptr() - first for t in tensors] == [6000 * i for i in range(8)] and first % 64 == 0
        assert (out.as_array() == (8 * b + np.arange(8, dtype="u1"))[:, None, None, None]).all()


def test_the_hint_spares_the_first_batches_the_guess():
    pipe = build(sources.dense, batch_size=4, bytes_per_sample_hint=6000)
    (out,) = pipe.run()
    assert out[3].data_ptr() - out[0].data_ptr() == 3 * 6000
    stats = pipe.external_source_shm_statistics()
    assert min(stats["capacities"]) >= 4 * 6000 and len(stats["capacities"]) == len(stats["per_sample_capacities"])


def test_memory_of_batches_is_used_again():
    pipe = build(sources.dense, batch_size=4)
    for _ in range(10):
        pipe.run()
    n = len(pipe.external_source_shm_statistics()["capacities"])
    for _ in range(30):
        pipe.run()
    assert len(pipe.external_source_shm_statistics()["capacities"]) <= n + 1 <= 10


@methods
@pytest.mark.parametrize("depth", [1, 4])
def test_whole_batches(method, depth):
    pipe = build(
        sources.whole, method, n_outputs=2, batch=True, batch_info=True, prefetch_queue_depth=depth, layout=["A", "BC"]
    )
    for i in range(5):
        x, y = pipe.run()
        assert (x.as_array() == np.full((3, 2), i)).all() and y.shape() == [(i, 2), (1, 2), (2, 2)]
        assert (x.layout(), y.layout(), y.dtype) == ("A", "BC", types.FLOAT64)


@methods
@pytest.mark.parametrize(
    ("cycle", "want"), [(None, [3, 0, 0]), ("no", [3, 0, 0]), ("raise", [3, 3, 3]), ("quiet", None), (True, None)]
)
def test_iterables(method, cycle, want):
    pipe = build(sources.three_batches, method, batch=True, cycle=cycle)
    if want is None:
        assert [values(pipe.run())[1][0] for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    else:
        assert [len(e) for e in epochs(pipe, 3)] == want


def test_reset_in_the_middle_of_an_epoch():
    pipe = build(sources.ten)
    assert values(pipe.run())[0] == [0, 0]
    pipe.reset()
    assert [values(pipe.run())[0] for _ in range(2)] == [[0, 1], [4, 1]]
    pipe.reset()
    assert values(pipe.run())[0] == [0, 2]


def test_the_batch_size_may_change():
    pipe = build(sources.numbered, batch_size=6)
    sizes, seen = [6, 2, 2, 5, 6], []
    for n in sizes:
        pipe.set_batch_size(n)
        seen += [s[0] for s in values(pipe.run())]
    assert seen == list(range(len(seen)))


def test_two_sources_in_one_pipeline():
    @pipeline_def(batch_size=2, py_num_workers=2)
    def pipe():
        a = fn.external_source(sources.numbered, batch=False, parallel=True)
        b = fn.external_source(sources.three_batches, cycle=True, batch=True, parallel=True)
        c = fn.external_source(lambda i: np.full((2, 1), i, "i4"))
        return a, b, c

    p = pipe()
    for i in range(6):
        a, b, c = p.run()
        assert a.at(1)[0] == 2 * i + 1 and b.at(0)[0] == i % 3 and c.at(0)[0] == i


def test_workers_differ_in_their_random_numbers():
    def draw(info):
        time.sleep(0.002)
        return np.random.randint(0, 1 << 30, 1)

    got = [v[0] for v in values(build(draw, workers=4, batch_size=40).run())]
    assert len(set(got)) == 40


# Errors -------------------------------------------------------------------------------------------------------------


@processes
def test_an_exception_is_raised_here_with_the_traceback_of_the_worker(method):
    pipe = build(sources.Raises(6), method)
    assert len(values(pipe.run())) == 4
    with pytest.raises(sources.OwnError, match="no sample 6") as caught:
        pipe.run()
    assert caught.value.number == 6
    told = str(caught.value.__cause__)
    for part in ("worker process", "sample 2 of iteration 1", "by Raises (sources.py:", "raise OwnError", "__call__"):
        assert part in told
    assert "penstock/external" not in told  # only the user's frames
    assert [i for (i,) in values(pipe.run())] == [8, 9, 10, 11]


def test_an_exception_in_a_thread():
    pipe = build(sources.Raises(6), "thread")
    pipe.run()
    with pytest.raises(sources.OwnError, match="no sample 6"):
        pipe.run()
    assert [i for (i,) in values(pipe.run())] == [8, 9, 10, 11]


def test_an_exception_that_can_not_be_sent():
    with pytest.raises(
        PipelineError, match=r"Unpicklable: it is no use\nIn worker process \d \(pid \d+\) while it made"
    ):
        build(sources.raises_unpicklable).run()


BAD = {
    "None": (lambda i: None, None, "the source gave None"),
    "text": (lambda i: "abc", None, "gave a str"),
    "too few outputs": (lambda i: (np.zeros(1),), 2, "gave 1 outputs, num_outputs is 2"),
    "one for two": (lambda i: 3, 2, "gave a int; num_outputs=2 asks for"),
    "dimensions": (lambda i: np.zeros((1,) * (1 + i.idx_in_batch // 3)), None, "2 of FLOAT64 in sample 3|sample 3"),
    "types": (lambda i: np.zeros(1, "u1" if i.idx_in_batch == 2 else "i2"), None, "sample 2"),
    "complex": (lambda i: np.zeros(1, "c8"), None, "complex64"),
    "objects": (lambda i: np.array([None]), None, "object"),
}


@pytest.mark.parametrize("method", ["fork", "thread", None])
@pytest.mark.parametrize("case", BAD)
def test_bad_data_names_source_and_sample(case, method):
    give, n_outputs, text = BAD[case]

    def sometimes(info):
        if info.iteration == 1:
            return give(info)
        return np.zeros(1) if n_outputs is None else (np.zeros(1),) * n_outputs

    args = {} if method else {"prefetch_queue_depth": 1}  # otherwise the source, and its error, run one `run` earlier
    pipe = build(sometimes, method or "fork", n_outputs=n_outputs, parallel=method is not None, pipe_args=args)
    pipe.run()
    with pytest.raises(PipelineError, match=text) as caught:
        pipe.run()
    told = str(caught.value)
    assert "sometimes (test_parallel.py:" in told and "iteration 1" in told
    assert "penstock.fn.external_source" in told and "sources.py" in told  # where it is used
    assert len(values(pipe.run())) == 4  # the next iteration


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize(
    ("give", "kwargs", "text"),
    [
        (lambda i: np.zeros((5, 1)), {}, "at most 4"),
        (lambda i: [np.zeros(1)] * 5, {}, "at most 4"),
        (lambda i: np.zeros(()), {}, "got a scalar"),
        (lambda i: (np.zeros((2, 1)), np.zeros((3, 1))), {"n_outputs": 2}, r"\[2, 3\] samples"),
        (lambda i: np.zeros((2, 1)), {"ndim": 2}, "ndim asks for 2"),
        (lambda i: np.zeros((2, 1)), {"dtype": types.UINT8}, "dtype asks for uint8"),
        (lambda i: np.zeros((2, 1)), {"layout": "HWC"}, "layout 'HWC'"),
        (lambda i: np.zeros((2, 1), "i4" if i == 0 else "f4"), {}, "int32 so far and has 1 dimensions of float32 now"),
        (lambda i: [b"ab"], {}, "sample 0: the source gave a bytes"),
    ],
)
def test_bad_batches(give, kwargs, text, parallel):
    pipe = build(give, batch=True, parallel=parallel, **kwargs)
    with pytest.raises(PipelineError, match=text):
        for _ in range(2):
            pipe.run()


@pytest.mark.parametrize(
    ("source", "kwargs", "error", "text"),
    [
        (sources.three_batches, {}, TypeError, "batches only"),
        (lambda: 1, {}, TypeError, "callable that takes one argument, a SampleInfo"),
        (None, {}, ValueError, "needs a source"),
        (sources.ten, {"prefetch_queue_depth": 0}, ValueError, "prefetch_queue_depth"),
        (sources.ten, {"timeout": -1}, ValueError, "timeout"),
        (sources.ten, {"cycle": "quiet"}, ValueError, "cycle='quiet' needs an iterable"),
        (sources.ten, {"cycle": "sometimes"}, ValueError, "cycle takes"),
        (sources.ten, {"workers": 0}, ValueError, "py_num_workers"),
        (sources.ten, {"method": "clone"}, ValueError, "py_start_method takes"),
        (lambda a, b: 1, {}, TypeError, r"takes 2 arguments \(a, b\)"),
        ((i for i in range(3)), {"batch": True, "cycle": True}, TypeError, "can't start a generator"),
    ],
)
def test_arguments_that_do_not_fit(source, kwargs, error, text):
    with pytest.raises(error, match=text):
        build(source, **kwargs).build()
