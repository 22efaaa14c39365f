# SPDX-License-Identifier: Apache-2.0
"""Dependence of random numbers on seeds and positions, arguments per sample, and errors."""

import numpy as np
import pytest
from draws import draw

from penstock import fn, ops, pipeline_def, types


@pytest.mark.parametrize("op", ["uniform", "normal", "coin_flip", "beta"])
class TestDependsOnNothingElse:
    """A number is a function of the seed, the operator, the sample and its place in the sample."""

    def test_batch_size_threads_depth(self, op):
        first = draw(op, 60)
        for batch, threads, depth in ((1, 1, 1), (7, 3, 4), (60, 16, 2), (20, 2, 9)):
            other = draw(op, batch, -(-60 // batch), threads, depth)[:60]
            np.testing.assert_array_equal(first, other)

    def test_shape(self, op):
        """A larger shape begins with the same numbers."""
        large, small = draw(op, 8, shape=[5000]), draw(op, 8, shape=[3])
        np.testing.assert_array_equal(large[:, :3], small)
        np.testing.assert_array_equal(large[:, 0], draw(op, 8))
        np.testing.assert_array_equal(draw(op, 8, shape=[50, 100]).reshape(8, -1), large)

    def test_seeds(self, op):
        a, b = draw(op, 1000, seed=1), draw(op, 1000, seed=2)
        assert (a != b).any()
        np.testing.assert_array_equal(draw(op, 100, seed=1, **{"shape": [2]}), draw(op, 100, seed=1, shape=[2]))

    def test_operators_epochs_samples_are_independent(self, op, tmp_path):
        (tmp_path / "f").write_bytes(b"x")

        @pipeline_def(batch_size=1000, num_threads=2, seed=3)
        def pipe():
            data, label = fn.readers.file(files=[str(tmp_path / "f")] * 1000)
            call = getattr(fn.random, op)
            return call(), call(), call(seed=9), call(seed=9), label

        p = pipe()
        first, second = [[np.array(x.as_array(), "f8").ravel() for x in p.run()] for _ in range(2)]
        np.testing.assert_array_equal(first[4], second[4])
        np.testing.assert_array_equal(first[2], first[3])  # the same explicit seed
        columns = np.stack([first[0], first[1], first[2], second[0], second[1], np.roll(first[0], 1)])
        correlations = np.corrcoef(columns)[np.triu_indices(6, 1)]
        assert np.abs(correlations).max() < 5 / np.sqrt(1000)

    def test_shape_of_an_input(self, op):
        samples = [np.zeros(s, "u1") for s in ((2, 3), (0, 4), (40, 50), (1, 1))]

        @pipeline_def(batch_size=4, num_threads=2, seed=3)
        def pipe():
            x = fn.external_source(source=lambda i: samples, layout="HW")
            shape = fn.external_source(source=lambda i: [np.int32(s.shape) for s in samples])
            call = getattr(fn.random, op)
            return call(x, seed=1), call(shape=shape, seed=1), getattr(ops.random, _class(op))(seed=1)(x)

        like, shaped, by_class = pipe().run()
        assert like.shape() == [s.shape for s in samples] and like.layout() == ""
        for i in range(4):
            np.testing.assert_array_equal(like.at(i), shaped.at(i))
            np.testing.assert_array_equal(like.at(i), by_class.at(i))


def _class(op):
    return "".join(w.capitalize() for w in op.split("_"))


def test_arguments_per_sample():
    @pipeline_def(batch_size=3, num_threads=2, seed=3)
    def pipe():
        column = lambda *v: fn.external_source(source=lambda i: [np.float32(x) for x in v])
        r = fn.random
        return (
            r.uniform(range=column([1, 2], [10, 20], [-5, -4])),
            r.uniform(values=column([1, 2], [10, 20], [-5, -4])),
            r.normal(mean=column(5, 6, 7), stddev=0.0),
            r.coin_flip(probability=column(0, 1, 0)),
            r.beta(alpha=column(1e4, 1, 1e4), beta=column(1, 1e4, 1e4)),
            r.uniform(range=[column(5, 6, 7), 8.0]),
        )

    a, b, c, d, e, f = (np.array(x.as_array()) for x in pipe().run())
    assert all(lo <= v < hi for v, (lo, hi) in zip(a, ((1, 2), (10, 20), (-5, -4))))
    assert all(v in pair for v, pair in zip(b, ((1, 2), (10, 20), (-5, -4))))
    assert c.tolist() == [5, 6, 7] and d.tolist() == [0, 1, 0]
    np.testing.assert_allclose(e, [1, 0, 0.5], atol=0.03)
    assert all(lo <= v < 8 for v, lo in zip(f, (5, 6, 7)))


def test_tiny_shape_parameters_of_beta():
    x = draw("beta", 1, shape=[20000], alpha=0.001, beta=0.001)
    assert np.isfinite(x).all() and 0.45 < x.mean() < 0.55 and ((x < 1e-3) | (x > 0.999)).mean() > 0.98


@pytest.mark.parametrize(
    "op, kwargs, text",
    [
        ("uniform", {"range": (5.0, 5.0)}, "range takes low < high; got"),
        ("uniform", {"range": (1.0, 2.0, 3.0)}, "range takes two numbers"),
        ("uniform", {"values": []}, "'values' is an empty list"),
        ("uniform", {"shape": [-1]}, "extents of the shape can't be negative"),
        ("uniform", {"dtype": types.BOOL}, "dtype takes"),
        ("normal", {"dtype": types.FLOAT16}, "dtype takes"),
        ("coin_flip", {"probability": 1.5}, r"probability takes a number in \[0, 1\]; got 1.5"),
        ("beta", {"alpha": 0.0}, "alpha takes a positive number; got 0.0"),
        ("beta", {"dtype": types.UINT8}, "dtype takes FLOAT, FLOAT64; got"),
    ],
)
def test_errors(op, kwargs, text):
    with pytest.raises(ValueError, match=text):
        draw(op, **kwargs)


@pytest.mark.parametrize(
    "values, kwargs, text",
    [
        (0, {}, "at least one thing to choose from; got 0"),
        (3, {"p": [0.5, 0.5]}, "there are 2 probabilities for 3 choices"),
        (2, {"p": [0.5, 0.6]}, "must add up to 1; their sum is 1.1"),
        (2, {"p": [1.5, -0.5]}, "probabilities must be in"),
        (2.5, {}, "must be an integer; got float32"),
    ],
)
def test_errors_of_choice(values, kwargs, text):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.random.choice(values, **kwargs)

    with pytest.raises(RuntimeError, match=text):
        pipe().run()


def test_errors_per_sample():
    @pipeline_def(batch_size=3, num_threads=1)
    def pipe(op, name, values, **kwargs):
        column = fn.external_source(source=lambda i: [np.float32(v) for v in values])
        return getattr(fn.random, op)(**{name: column})

    for op, name, values, text in (
        ("uniform", "range", [[0, 1], [2, 1], [0, 1]], r"low < high; got \[2.0, 1.0\]"),
        ("coin_flip", "probability", [0, 2, 1], r"in \[0, 1\]; got 2"),
        ("beta", "beta", [1, -1, 1], "beta takes a positive number; got -1"),
    ):
        with pytest.raises(RuntimeError, match=text):
            pipe(op, name, values).run()


def test_deprecated_names():
    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def pipe():
        return fn.uniform(), fn.coin_flip(), fn.normal_distribution(), ops.CoinFlip()(), ops.Uniform(range=(1, 2))()

    with pytest.warns(DeprecationWarning, match="it is now fn.random.uniform"):
        assert len(pipe().run()) == 5
