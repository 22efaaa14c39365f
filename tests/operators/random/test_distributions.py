# SPDX-License-Identifier: Apache-2.0
"""Distributions of the random operators against SciPy, and what their numbers depend on."""

import numpy as np
import pytest
from scipy import stats

from penstock import fn, ops, pipeline_def, types

N = 20000


def draw(op, batch_size=64, iterations=1, num_threads=2, depth=2, seed=5, **kwargs):
    """(iterations * batch_size, ...) numbers of fn.random.<op>."""

    @pipeline_def(batch_size=batch_size, num_threads=num_threads, prefetch_queue_depth=depth, seed=seed)
    def pipe():
        return getattr(fn.random, op)(**kwargs)

    p = pipe()
    return np.concatenate([np.array(p.run()[0].as_array()) for _ in range(iterations)])


def many(op, **kwargs):
    """N numbers as one sample (a kernel), as samples of one number each (batch-wise), and a few a sample."""
    yield draw(op, 1, shape=[N], **kwargs).ravel()
    yield draw(op, 1000, N // 1000, **kwargs).ravel()
    yield draw(op, 500, N // 1000, shape=[2], **kwargs).ravel()


DISTRIBUTIONS = [
    ("uniform", {}, stats.uniform(-1, 2)),
    ("uniform", {"range": (3.0, 4.5)}, stats.uniform(3, 1.5)),
    ("uniform", {"range": (3.0, 4.5), "dtype": types.FLOAT64}, stats.uniform(3, 1.5)),
    ("normal", {}, stats.norm()),
    ("normal", {"mean": -7.0, "stddev": 0.25}, stats.norm(-7, 0.25)),
    ("normal", {"mean": 100.0, "stddev": 3.0, "dtype": types.FLOAT64}, stats.norm(100, 3)),
    ("beta", {}, stats.beta(1, 1)),
    ("beta", {"alpha": 0.4, "beta": 0.4}, stats.beta(0.4, 0.4)),
    ("beta", {"alpha": 2.0, "beta": 5.0}, stats.beta(2, 5)),
    ("beta", {"alpha": 0.3, "beta": 20.0, "dtype": types.FLOAT64}, stats.beta(0.3, 20)),
    ("beta", {"alpha": 300.0, "beta": 200.0}, stats.beta(300, 200)),
]


@pytest.mark.parametrize("op, kwargs, expected", DISTRIBUTIONS)
def test_continuous(op, kwargs, expected):
    for x in many(op, **kwargs):
        assert x.dtype == (np.float64 if "dtype" in kwargs else np.float32)
        assert stats.kstest(x, expected.cdf).pvalue > 1e-4
        # Pairs of neighbours are independent: a Kolmogorov-Smirnov test would not see it if they were not.
        ranks = expected.cdf(x.astype("f8"))
        counts = np.histogram2d(ranks[::2], ranks[1::2], 8, [(0, 1), (0, 1)])[0]
        assert stats.chisquare(counts.ravel()).pvalue > 1e-4


@pytest.mark.parametrize(
    "op, kwargs, frequencies",
    [
        ("coin_flip", {}, {0: 0.5, 1: 0.5}),
        ("coin_flip", {"probability": 0.1, "dtype": types.BOOL}, {0: 0.9, 1: 0.1}),
        ("coin_flip", {"probability": 1.0}, {1: 1}),
        ("coin_flip", {"probability": 0.0, "dtype": types.UINT8}, {0: 1}),
        ("uniform", {"values": [1.0, 2.5, -7.0]}, {1: 1 / 3, 2.5: 1 / 3, -7: 1 / 3}),
        # Real numbers are rounded: the ends of the range are half as frequent.
        ("uniform", {"range": (0.0, 2.0), "dtype": types.INT32}, {0: 0.25, 1: 0.5, 2: 0.25}),
        ("uniform", {"range": (-1.0, 2.0), "dtype": types.INT8}, {-1: 1 / 6, 0: 1 / 3, 1: 1 / 3, 2: 1 / 6}),
        ("uniform", {"range": (0.0, 2.0), "dtype": types.INT64}, {0: 0.25, 1: 0.5, 2: 0.25}),
        ("uniform", {"range": (-1.0, 1.0), "dtype": types.UINT16}, {0: 0.75, 1: 0.25}),
        ("uniform", {"range": (254.0, 256.0), "dtype": types.UINT8}, {254: 0.25, 255: 0.75}),
        (
            "normal",
            {"dtype": types.UINT8},
            {i: stats.norm.cdf(i + 0.5) - (i and stats.norm.cdf(i - 0.5)) for i in range(5)},
        ),
    ],
)
def test_discrete(op, kwargs, frequencies):
    for x in many(op, **kwargs):
        values, counts = np.unique(x, return_counts=True)
        seen = dict(zip(values.tolist(), counts.tolist()))
        assert set(seen) <= set(frequencies) | {5, 6}
        if len(frequencies) > 1:
            observed = np.array([seen.get(v, 0) for v in frequencies])
            expected = np.array(list(frequencies.values()))
            assert stats.chisquare(observed, expected / expected.sum() * observed.sum()).pvalue > 1e-4
        else:
            assert set(seen) == set(frequencies)


@pytest.mark.parametrize(
    "values, kwargs, frequencies",
    [
        (4, {}, {0: 0.25, 1: 0.25, 2: 0.25, 3: 0.25}),
        ([7, 8, 9], {}, {7: 1 / 3, 8: 1 / 3, 9: 1 / 3}),
        ([7, 8, 9], {"p": [0.2, 0.0, 0.8]}, {7: 0.2, 9: 0.8}),
        (3, {"p": [0.5, 0.5, 0.0]}, {0: 0.5, 1: 0.5}),
    ],
)
def test_choice(values, kwargs, frequencies):
    for batch, shape in ((N, None), (N // 10, [10]), (2, [N // 2])):

        @pipeline_def(batch_size=batch, num_threads=2, seed=2)
        def pipe(shape):
            return fn.random.choice(values, **kwargs, **({} if shape is None else {"shape": shape}))

        x = pipe(shape).run()[0].as_array()
        assert x.dtype == np.int32 and x.shape == (batch, *(shape or ()))
        seen = dict(zip(*(a.tolist() for a in np.unique(x, return_counts=True))))
        assert set(seen) == set(frequencies)
        expected = np.array([frequencies[v] for v in seen]) * N
        assert stats.chisquare(list(seen.values()), expected).pvalue > 1e-4


def test_choice_of_slices():
    samples = [np.arange(12, dtype="i2").reshape(3, 4) + 100 * i for i in range(5)]
    ragged = [np.arange(4 * k, dtype="i2").reshape(k, 4) for k in (1, 2, 3, 4, 5)]
    like = [np.zeros((k, 2), "u1") for k in (0, 1, 2, 3, 1)]

    @pipeline_def(batch_size=5, num_threads=2, seed=2)
    def pipe():
        x = fn.external_source(source=lambda i: samples, layout="HW")
        y = fn.external_source(source=lambda i: ragged)
        k = fn.external_source(source=lambda i: [np.int64(v) for v in (1, 5, 10, 100, 1000)])
        z = fn.external_source(source=lambda i: like)
        choice = fn.random.choice
        return choice(x), choice(x, shape=[2]), choice(y, shape=[3]), choice(k), choice(x, z), choice(k, z, seed=4)

    one, two, of_ragged, number, shaped, numbers = pipe().run()
    assert (one.layout(), two.layout(), shaped.layout()) == ("W", "HW", "")
    for i in range(5):
        assert one.at(i).tolist() in samples[i].tolist()
        assert two.at(i).shape == (2, 4) and all(row in samples[i].tolist() for row in two.at(i).tolist())
        assert of_ragged.at(i).shape == (3, 4) and all(r in ragged[i].tolist() for r in of_ragged.at(i).tolist())
        assert number.at(i).dtype == np.int64 and 0 <= number.at(i) < (1, 5, 10, 100, 1000)[i]
        assert shaped.at(i).shape == (*like[i].shape, 4)
        assert numbers.at(i).shape == like[i].shape


def test_floats_stay_below_the_upper_end():
    x = draw("uniform", 1, shape=[1 << 22], range=(16777214.0, 16777216.0)).ravel()
    assert set(np.unique(x)) == {16777214, 16777215}
    assert draw("uniform", 1, shape=[1 << 22], range=(0.0, 1.0)).max() < 1


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
        ("coin_flip", "probability", [0, 2, 1], r"in \[0, 1\]; got 2.0"),
        ("beta", "beta", [1, -1, 1], "beta takes a positive number; got -1.0"),
    ):
        with pytest.raises(RuntimeError, match=text):
            pipe(op, name, values).run()


def test_deprecated_names():
    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def pipe():
        return fn.uniform(), fn.coin_flip(), fn.normal_distribution(), ops.CoinFlip()(), ops.Uniform(range=(1, 2))()

    with pytest.warns(DeprecationWarning, match="it is now fn.random.uniform"):
        assert len(pipe().run()) == 5
