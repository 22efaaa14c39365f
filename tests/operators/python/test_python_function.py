# SPDX-License-Identifier: Apache-2.0
"""fn.python_function and similar operators: the function's arguments, results and errors."""

import threading

import numpy as np
import pytest

from penstock import PipelineError, fn, ops, pipeline_def, types

X = [np.full((k + 1, 2), k, np.uint8) for k in range(3)]


def outputs(define, n=3, **kwargs):
    pipe = pipeline_def(define, batch_size=n, num_threads=1, **kwargs)()
    return [([o.at(i) for i in range(n)], o.layout()) for o in pipe.run()]


def x():
    return fn.external_source(source=lambda i: X, layout="HW")


def same(got, want):
    for g, w in zip(got, want):
        np.testing.assert_array_equal(g, w)
        assert g.dtype == w.dtype


def test_one_output():
    ((got, layout),) = outputs(lambda: fn.python_function(x(), function=lambda a: a + 1))
    same(got, [a + 1 for a in X])
    assert layout == ""
    ((got, _),) = outputs(lambda: ops.PythonFunction(function=lambda a: a.T)(x()))
    same(got, [a.T for a in X])


def test_several_inputs_and_outputs_and_layouts():
    def both(a, b):
        return a + b, (a * 2).astype("f4")

    got = outputs(lambda: fn.python_function(x(), x(), function=both, num_outputs=2, output_layouts=["AB"]))
    same(got[0][0], [2 * a for a in X])
    same(got[1][0], [(2 * a).astype("f4") for a in X])
    assert [layout for _, layout in got] == ["AB", ""]
    got = outputs(lambda: fn.python_function(x(), x(), function=both, num_outputs=2, output_layouts="HW"))
    assert [layout for _, layout in got] == ["HW", "HW"]


def test_batches():
    seen = []

    def batch(a):
        seen.append((type(a), len(a)))
        return [s + 1 for s in a[::-1]], [np.int64(s.sum()) for s in a]

    got = outputs(lambda: fn.python_function(x(), function=batch, num_outputs=2, batch_processing=True))
    same(got[0][0], [a + 1 for a in X[::-1]])
    same(got[1][0], [np.int64(a.sum()) for a in X])
    assert seen[0] == (list, 3)


def test_no_inputs_and_no_outputs():
    seen = []
    ((got, _),) = outputs(lambda: fn.python_function(function=lambda: np.array([1, 2])))
    same(got, [np.array([1, 2])] * 3)

    def only_looks():
        data = x()
        fn.python_function(data, function=lambda a: seen.append(a.sum()), num_outputs=0)
        return data

    outputs(only_looks)
    assert seen[:3] == [a.sum() for a in X]


def test_an_array_that_is_used_again_is_copied():
    buffer = np.zeros(2)

    def fill(a):
        buffer[:] = a.sum()
        return buffer

    ((got, _),) = outputs(lambda: fn.python_function(x(), function=fill, batch_processing=False))
    assert [g.tolist() for g in got] == [[0.0, 0.0], [4.0, 4.0], [12.0, 12.0]]
    kept = []

    def keeps(a):
        kept.append(np.array(a))
        return kept[-1]

    ((got, _),) = outputs(lambda: fn.python_function(x(), function=keeps))
    kept[0][...] = 99
    same(got, X)


def test_writing_to_the_input_harms_nobody():
    given = [np.zeros(2, "u1") for _ in range(3)]

    def write(a):
        a[...] = 9
        return a

    def define():
        data = fn.external_source(source=lambda i: given, no_copy=True)
        return fn.python_function(data, function=write), fn.python_function(types.Constant([1, 2]), function=write)

    pipe = pipeline_def(define, batch_size=3, num_threads=1)()
    for _ in range(2):
        assert [o.at(0).tolist() for o in pipe.run()] == [[9, 9], [9, 9]]
    assert not np.any(given)


@pytest.mark.parametrize("depth", [1, 4])
def test_batches_come_in_order_and_one_at_a_time(depth):
    """Although two are in flight; also after a failed batch, and after a reset."""
    calls, busy = [], threading.Lock()

    def function(a):
        assert busy.acquire(blocking=False), "called twice at once"
        calls.append(int(a))
        busy.release()
        return a

    def source(i):
        return [np.array(3 * i + k) for k in range(3)] if i < 60 else [][1]

    @pipeline_def(batch_size=3, num_threads=2, prefetch_queue_depth=depth)
    def pipe():
        data = fn.external_source(source=source)
        bad = fn.python_function(data, function=lambda a: [][1] if a == 31 else a)
        return fn.python_function(bad, function=function)

    p = pipe()
    for i in range(40):
        if i == 10:
            with pytest.raises(PipelineError, match="IndexError for sample 1"):
                p.run()
        else:
            p.run()
        if i == 20:
            before = len(calls)
            p.reset()
            p.run()
            assert calls[before - 3 * depth :].count(0) <= 2
            break
    first = calls[: calls.index(0, 1)] if 0 in calls[1:] else calls
    assert first == [c for c in range(first[-1] + 1) if not 30 <= c <= 32]


def boom(a):
    raise KeyError("no such thing")


@pytest.mark.parametrize(
    "kwargs, error, text",
    [
        (
            {"function": boom},
            PipelineError,
            r"boom raised KeyError for sample 0: 'no such thing'\n.*in boom",
        ),
        ({"function": lambda a: None}, PipelineError, "has to return NumPy arrays; got NoneType"),
        ({"function": lambda a: 1.5}, PipelineError, "got float"),
        ({"function": lambda a: a, "num_outputs": 2}, PipelineError, "a tuple of 2 outputs.*got ndarray for sample 0"),
        ({"function": lambda a: (a, a, a), "num_outputs": 2}, PipelineError, "got a tuple of 3"),
        ({"function": lambda a: a.astype("f4") if len(a) > 1 else a}, PipelineError, "the same type"),
        ({"function": lambda a: a[:1], "batch_processing": True}, PipelineError, "a list of 3 samples; got 1"),
        ({"function": lambda a: a, "output_layouts": "ABC"}, PipelineError, "which the layout 'ABC' does not fit"),
        ({"function": lambda a: np.array("text")}, PipelineError, "output 0 of "),
        ({"function": 5}, TypeError, "function takes a callable; got int"),
        ({"function": boom, "num_outputs": -1}, ValueError, "num_outputs takes 0 or more"),
        ({"function": boom, "output_layouts": ["A", "B"]}, ValueError, "2 output_layouts for 1 outputs"),
        ({}, TypeError, "required argument not given: function"),
    ],
)
def test_errors(kwargs, error, text):
    with pytest.raises(error, match=f"(?s){text}"):
        outputs(lambda: fn.python_function(x(), **kwargs))


def test_the_cause_is_the_users_exception():
    with pytest.raises(PipelineError) as caught:
        outputs(lambda: fn.python_function(x(), function=boom))
    causes = []
    e = caught.value
    while e is not None:
        causes.append(type(e))
        e = e.__cause__
    assert KeyError in causes


def test_dlpack():
    ((got, _),) = outputs(lambda: fn.dl_tensor_python_function(x(), function=lambda c: c[::-1]))
    same(got, X[::-1])
    ((got, _),) = outputs(lambda: fn.dl_tensor_python_function(x(), function=lambda c: c, batch_processing=False))
    same(got, X)
    with pytest.raises(PipelineError, match="has to return DLPack capsules; got int"):
        outputs(lambda: fn.dl_tensor_python_function(x(), function=lambda c: [1, 2, 3]))


def test_in_a_branch():
    def define():
        data = x()
        if fn.external_source(source=lambda i: [np.array(k != 1) for k in range(3)]):
            data = fn.python_function(data, function=lambda a: a + 50, output_layouts="HW")
        return data

    ((got, _),) = outputs(define, enable_conditionals=True)
    same(got, [X[0] + 50, X[1], X[2] + 50])
