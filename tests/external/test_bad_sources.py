# SPDX-License-Identifier: Apache-2.0
"""Faulty sources: a clear error with source and sample, and the next batch is available."""

import itertools

import numpy as np
import pytest
from sources import build, values

from penstock import PipelineError, fn, pipeline_def

HERE = "test_bad_sources.py"
METHODS = [None, "fork", "thread"]
WHEN_WANTED = {None: {"prefetch_queue_depth": 1}}  # otherwise the source, and its error, run one `run` earlier
GOOD = np.zeros((2, 3), "f4")


def wrong_at(info, what):
    """`what(sample)` for the second sample of the second batch, good data otherwise."""
    return what() if (info.iteration, info.idx_in_batch) == (1, 1) else GOOD


class Unconvertible:
    """As tensors of PyTorch of a type, or in memory, that NumPy does not have."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")


def of_torch(**kwargs):
    torch = pytest.importorskip("torch")
    return torch.zeros(2, 3, **{k: getattr(torch, v) if k == "dtype" else v for k, v in kwargs.items()})


SAMPLES = {  # fault, n_outputs, arguments, message
    "None": (lambda: None, None, {}, "gave None"),
    "one output too few": (lambda: (GOOD,), 2, {}, "gave 1 outputs, num_outputs is 2"),
    "no tuple": (lambda: 5, 2, {}, "gave a int; num_outputs=2 asks for"),
    "ragged list": (lambda: [[1, 2], [3]], None, {}, "a list that is no array"),
    "dimensions": (lambda: np.zeros(3, "f4"), None, {}, "sample 1"),
    "type": (lambda: np.zeros((2, 3), "i4"), None, {}, "sample 1"),
    "text": (lambda: "abc", None, {}, "gave a str"),
    "bytes": (lambda: b"abc", None, {}, "np.frombuffer"),
    "object": (lambda: np.array([None, 1]), None, {}, "object"),
    "no array": (Unconvertible, None, {}, "gave a Unconvertible that can't become an array: Got unsupported Scalar"),
    "bfloat16": (lambda: of_torch(dtype="bfloat16"), None, {}, "gave a Tensor that can't become an array: .*BFloat16"),
    "no memory": (lambda: of_torch(device="meta"), None, {}, "gave a Tensor that can't become an array: .*meta"),
    "too many dimensions": (lambda: np.zeros((1,) * 9, "f4"), None, {}, "dimensions"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", SAMPLES)
def test_a_bad_sample(case, method):
    what, n_outputs, kwargs, text = SAMPLES[case]

    def careless(info):
        data = wrong_at(info, what)
        return (GOOD,) * n_outputs if n_outputs and data is GOOD else data

    pipe = build(
        careless,
        method or "fork",
        n_outputs=n_outputs,
        parallel=method is not None,
        pipe_args=WHEN_WANTED.get(method),
        **kwargs,
    )
    pipe.run()
    with pytest.raises(PipelineError, match=text) as caught:
        pipe.run()
    told = str(caught.value)
    assert f"careless ({HERE}:" in told and "iteration 1" in told and "sample 1" in told
    for _ in range(3):
        assert len(values(pipe.run())) == 4


BATCHES = {
    "too large": (lambda: np.zeros((5, 2), "f4"), {}, "at most 4"),
    "a list that is too large": (lambda: [np.zeros(2, "f4")] * 5, {}, "at most 4"),
    "None": (lambda: None, {}, "gave None"),
    "None in a list": (lambda: [np.zeros(2, "f4"), None], {}, "sample 1: the source gave None"),
    "type": (
        lambda: np.zeros((4, 2), "u1"),
        {},
        "had 1 dimensions of float32 so far and has 1 dimensions of uint8 now",
    ),
    "dimensions": (lambda: np.zeros((4, 2, 2), "f4"), {}, "so far and has 2 dimensions"),
    "not the type asked for": (lambda: np.zeros((4, 2), "u1"), {"dtype": "float"}, "but dtype asks for float32"),
    "not the dimensions asked for": (lambda: np.zeros((4, 2, 2), "f4"), {"ndim": 1}, "but ndim asks for 1"),
    "not the layout asked for": (
        lambda: np.zeros((4, 2, 2), "f4"),
        {"layout": "X"},
        "which the layout 'X' does not fit",
    ),
    "a scalar": (lambda: np.float32(1), {}, "got a scalar"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", BATCHES)
def test_a_bad_batch(case, method):
    what, kwargs, text = BATCHES[case]
    if "dtype" in kwargs:
        from penstock import types

        kwargs = {"dtype": types.FLOAT}

    def careless(i):
        return what() if i == 1 else np.zeros((4, 2), "f4")

    pipe = build(
        careless, method or "fork", batch=True, parallel=method is not None, pipe_args=WHEN_WANTED.get(method), **kwargs
    )
    pipe.run()
    with pytest.raises(PipelineError, match=text) as caught:
        pipe.run()
    assert f"careless ({HERE}:" in str(caught.value) and "iteration 1" in str(caught.value)
    for _ in range(3):
        assert len(values(pipe.run())) == 4


def test_batches_of_different_sizes():
    """A batch may be small, but the same size is required of all sources."""

    def small(i):
        return np.zeros((1 if i == 1 else 3, 2), "f4")

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe():
        return fn.external_source(small), fn.external_source(lambda i: np.zeros((3, 2), "f4"))

    p = pipe()
    p.run()
    with pytest.raises(PipelineError, match="3 samples|1 samples|1 and 3|3 and 1|different") as caught:
        p.run()
    assert HERE in str(caught.value)
    assert [len(o) for o in p.run()] == [3, 3]


def test_what_is_ragged_where_an_array_is_asked_for():
    pipe = build(lambda info: np.zeros(1 + info.idx_in_batch * (info.iteration == 1)), parallel=False)
    assert pipe.run()[0].as_array().shape == (4, 1)
    (out,) = pipe.run()
    assert not out.is_dense_tensor()
    with pytest.raises(ValueError, match="differ in shape.*resize, crop, pad"):
        out.as_array()
    assert pipe.run()[0].as_array().shape == (4, 1)


# Iterables ------------------------------------------------------------------------------------------------------------


def endless():
    for i in itertools.count():
        yield np.full((2, 1), i, "i4")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cycle", [None, True, "quiet", "raise"])
def test_an_endless_generator(cycle, method):
    """It never ends, so only `reset` restarts it; and the pipeline can be closed."""
    pipe = build(endless, method or "fork", batch=True, cycle=cycle, parallel=method is not None)
    assert [int(pipe.run()[0].at(0)[0]) for _ in range(30)] == list(range(30))
    pipe.reset()
    assert int(pipe.run()[0].at(1)[0]) == (30 if cycle is None else 0)
    pipe.close()


def test_a_generator_that_was_begun_can_not_cycle():
    with pytest.raises(TypeError, match="can't start a generator again; give the generator function itself"):
        build(endless(), batch=True, cycle=True, parallel=False).build()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_under_cycle(method):
    def nothing():
        yield from ()

    pipe = build(nothing, method or "fork", batch=True, cycle=True, parallel=method is not None)
    for _ in range(2):
        with pytest.raises(StopIteration):
            pipe.run()


@pytest.mark.parametrize("method", METHODS)
def test_an_iterable_with_one_bad_batch(method):
    def gives():
        for i in range(4):
            yield None if i == 1 else np.full((2, 1), i, "i4")

    pipe = build(gives, method or "fork", batch=True, parallel=method is not None, pipe_args=WHEN_WANTED.get(method))
    pipe.run()
    with pytest.raises(PipelineError, match="gave None") as caught:
        pipe.run()
    assert f"gives ({HERE}:" in str(caught.value)
    assert [int(pipe.run()[0].at(0)[0]) for _ in range(2)] == [2, 3]
