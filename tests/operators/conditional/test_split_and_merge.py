# SPDX-License-Identifier: Apache-2.0
"""The operators that conditionals are made of: `_conditional.split`, `_conditional.merge`, `_conditional.logical`.
Whole programs are in tests/pipeline/test_conditionals.py."""

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def


def run(samples, mask, other=None, layout="HW"):
    @pipeline_def(batch_size=len(samples), num_threads=1, enable_conditionals=True)
    def pipe():
        x = fn.external_source(source=lambda i: samples, layout=layout)
        y = x if other is None else fn.external_source(source=lambda i: other, layout=layout)
        if fn.external_source(source=lambda i: [np.array(m) for m in mask]):
            out = fn.copy(x)
        else:
            out = fn.copy(y)
        return out

    return pipe().run()[0]


@pytest.mark.parametrize("dtype", ["u1", "i8", "f2", "f8", "?"])
@pytest.mark.parametrize("mask", [[True] * 5, [False] * 5, [True, False, True, False, False]])
@pytest.mark.parametrize("size", [1, 40], ids=["small", "large"])
def test_every_sample_from_its_branch(dtype, mask, size):
    rng = np.random.default_rng(1)
    ragged = [rng.integers(0, 2, (i + 1, size)).astype(dtype) for i in range(5)]
    dense = [rng.integers(0, 2, (3, size)).astype(dtype) for _ in range(5)]
    for samples, other in ((ragged, dense), (dense, ragged), (dense, dense[::-1])):
        out = run(samples, mask, other)
        assert out.layout() == "HW"
        for i, m in enumerate(mask):
            np.testing.assert_array_equal(out.at(i), (samples if m else other)[i])
            assert out.at(i).dtype == np.dtype(dtype)


def test_empty_samples():
    out = run([np.zeros((0, 3)), np.ones((2, 3)), np.zeros((0, 0))], [True, False, True])
    assert out.shape() == [(0, 3), (2, 3), (0, 0)]


def test_conditions_of_any_type():
    for mask in ([0, 3, -1], [0.0, 0.5, np.nan], [np.uint8(0), np.uint8(255), np.uint8(1)]):
        out = run([np.zeros((1, 1))] * 3, mask, [np.ones((1, 1))] * 3)
        assert [float(out.at(i)[0, 0]) for i in range(3)] == [1.0, 0.0, 0.0]


def test_paths_follow_the_samples(tmp_path):
    files = []
    for i in range(4):
        (tmp_path / str(i)).write_bytes(bytes(400) if i % 2 else b"x")
        files.append(str(tmp_path / str(i)))

    @pipeline_def(batch_size=4, num_threads=1, enable_conditionals=True)
    def pipe():
        contents, labels = fn.readers.file(files=files)
        if fn.reshape(labels, shape=[]) == 2:
            out = fn.copy(contents)
        else:
            out = contents
        return out, labels

    out, labels = pipe().run()
    assert [t.source_info() for t in out] == files == [t.source_info() for t in labels]


def test_wrong_calls():
    with pytest.raises(PipelineError, match="different numbers of dimensions: 2 where the condition is true, 1 where"):
        run([np.zeros((1, 1))] * 2, [True, False], [np.zeros(1)] * 2, layout="")
    with pytest.raises(ValueError, match="1 inputs for operation 'and'"):
        pipeline_def(lambda: fn._conditional.logical(fn.random.coin_flip(), operation="and"), batch_size=1)()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, p: fn._conditional.split(x, p),
        lambda x, p: fn._conditional.split(x, predicate=p),  # as in DALI's own tests
        lambda x, p: fn._conditional.merge(x, x, p),
    ],
)
def test_by_hand_they_are_refused(call):
    """A part of a batch outside of a branch once crashed the operators after it."""

    def define():
        p = fn.external_source(source=lambda i: [np.array(k % 2 == 0) for k in range(4)])
        return fn.flip(call(fn.external_source(source=lambda i: [np.ones((3, 4, 3), "u1")] * 4, layout="HWC"), p))

    with pytest.raises(ValueError, match="is created by `if` and can't be called: write `if condition"):
        pipeline_def(define, batch_size=4, num_threads=1)()
