# SPDX-License-Identifier: Apache-2.0
"""Every sample has the distribution of its own arguments, also where vectors differ in length; every output type."""

import numpy as np
import pytest
from draws import draw
from scipy import stats

from penstock import fn, pipeline_def, types

N = 4000
INTEGERS = [types.DALIDataType[s + str(8 * n)] for s in ("INT", "UINT") for n in (1, 2, 4, 8)]


def run(graph, n, num_threads=3, seed=7):
    """(n, ...) samples of the first output of `graph(column)`; `column(values)` is data, one value per sample."""

    @pipeline_def(batch_size=n, num_threads=num_threads, seed=seed)
    def pipe():
        return graph(lambda values: fn.external_source(source=lambda i: [np.float32(v) for v in values]))

    (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(n)]


RANGES = [[0, 1], [-5, -4.5], [100, 300]]
NORMALS = [(0, 1), (-20, 0.5), (7, 30)]
BETAS = [(1, 1), (0.5, 0.5), (2, 9)]


@pytest.mark.parametrize(
    "graph, expected",
    [
        (lambda c: fn.random.uniform(range=c(RANGES), shape=[N]), [stats.uniform(a, b - a) for a, b in RANGES]),
        (
            lambda c: fn.random.normal(mean=c([a for a, _ in NORMALS]), stddev=c([b for _, b in NORMALS]), shape=[N]),
            [stats.norm(*p) for p in NORMALS],
        ),
        (
            lambda c: fn.random.beta(alpha=c([a for a, _ in BETAS]), beta=c([b for _, b in BETAS]), shape=[N]),
            [stats.beta(*p) for p in BETAS],
        ),
    ],
    ids=["uniform", "normal", "beta"],
)
def test_continuous(graph, expected):
    samples = run(graph, len(expected))
    for x, law in zip(samples, expected):
        assert stats.kstest(x, law.cdf).pvalue > 1e-4
    for x, y in zip(samples, run(graph, len(expected), num_threads=1)):
        np.testing.assert_array_equal(x, y)


def check_frequencies(x, frequencies):
    values, counts = np.unique(x, return_counts=True)
    assert set(values.tolist()) == {v for v, f in frequencies.items() if f}
    if len(values) > 1:
        assert stats.chisquare(counts, [frequencies[v] * x.size for v in values.tolist()]).pvalue > 1e-4


def test_coin_flip():
    p = [0, 0.1, 0.5, 1]
    for x, q in zip(run(lambda c: fn.random.coin_flip(probability=c(p), shape=[N]), 4), p):
        check_frequencies(x, {0: 1 - q, 1: q})


@pytest.mark.parametrize("lists", [[[1, 2], [5, 9], [7, 8]], [[3], [1, 2, 4], [10, 20, 30, 40, 50]]])
def test_values_of_different_number(lists):
    for shape in ([N], [20, N // 20]):
        for x, values in zip(run(lambda c, s=shape: fn.random.uniform(values=c(lists), shape=s), 3), lists):
            check_frequencies(x, {v: 1 / len(values) for v in values})


def test_probabilities_of_different_number():
    lists, p = [[1], [7, 8], [3, 4, 5]], [[1], [0.25, 0.75], [0.5, 0, 0.5]]
    for x, values, q in zip(run(lambda c: fn.random.choice(c(lists), p=c(p), shape=[N]), 3), lists, p):
        check_frequencies(x, dict(zip(values, q)))


def test_scalars_from_lists_of_different_number():
    lists = [[1], [7, 8], [3, 4, 5]] * 20
    for x, values in zip(run(lambda c: fn.random.uniform(values=c(lists)), 60), lists):
        assert x.shape == () and x in values


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_rounded_and_clamped(dtype):
    """Both ends of a range are half as frequent as other values; values beyond the type are clamped."""
    info = np.iinfo(types.to_numpy_type(dtype))
    x = draw("uniform", 1, shape=[20000], range=(0.0, 4.0), dtype=dtype)
    assert x.dtype == info.dtype
    check_frequencies(x, {0: 1 / 8, 1: 1 / 4, 2: 1 / 4, 3: 1 / 4, 4: 1 / 8})
    z = draw("normal", 1, shape=[20000], mean=3.0, stddev=2.0, dtype=dtype)
    edges = np.arange(0.5, 6)
    seen = np.histogram(z, [-1e9, *edges, 1e9])[0]
    expected = np.diff([0, *stats.norm(3, 2).cdf(edges), 1]) * z.size
    assert stats.chisquare(seen, expected).pvalue > 1e-4 and z.min() >= info.min
    far = 2.0 ** (8 * info.dtype.itemsize + 2)
    wide = draw("uniform", 1, shape=[1000], range=(-far, far), dtype=dtype)
    assert wide.min() == info.min and wide.max() == info.max and 350 < (wide == info.max).sum() < 650
    big = draw("uniform", 1, shape=[100], values=[-far, far, 1.5, -0.4], dtype=dtype)
    assert set(big.ravel().tolist()) == {info.min, info.max, 2, 0}


def test_not_a_number_stays_one():
    for dtype in (types.FLOAT, types.FLOAT64):
        assert np.isnan(draw("normal", 1, shape=[100], mean=float("nan"), dtype=dtype)).all()
        assert np.isnan(draw("normal", 1, shape=[100], stddev=float("nan"), dtype=dtype)).all()
        assert np.isnan(draw("uniform", 1, shape=[10], values=[float("nan")], dtype=dtype)).all()


@pytest.mark.parametrize(
    "graph, text",
    [
        (lambda c: fn.random.uniform(values=c([[1], [], [2]])), "'values' has no values to choose from"),
        (lambda c: fn.random.uniform(range=c([[0, 1], [0, np.inf], [0, 1]])), r"finite numbers; got \[0.0, inf\]"),
        (lambda c: fn.random.uniform(range=c([[0, 1], [0], [0, 1]])), "the same number of values for every sample"),
        (lambda c: fn.random.choice(c([[1], [1, 2], [1]]), p=c([[1], [1], [1]])), "are 1 probabilities for 2 choices"),
        (lambda c: fn.random.choice(c([[1], [1, 2], [1]]), p=c([[1], [0.5, 0.6], [1]])), "their sum is 1.1"),
    ],
)
def test_errors(graph, text):
    with pytest.raises(RuntimeError, match=text):
        run(graph, 3)


def test_an_infinite_range():
    with pytest.raises(ValueError, match="range takes finite numbers"):
        draw("uniform", range=(0.0, float("inf")))
