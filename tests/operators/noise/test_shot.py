# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from noise import TYPES, check_determinism, check_types, disturb
from scipy import stats

P_VALUE = 1e-4
N = 30000


def test_determinism():
    check_determinism("shot", factor=5.0)
    check_determinism("shot", factor=0.5)


def test_types():
    check_types("shot")


def check_poisson(counts, mean):
    """Chi-square over the values that are not rare, and the rest on either side."""
    low, high = stats.poisson.ppf([0.003, 0.997], mean)
    edges = np.unique(np.round(np.linspace(low, high, int(min(high - low, 40)) + 1)))
    seen = np.histogram(counts, [-np.inf, *(edges + 0.5), np.inf])[0]
    expected = np.diff(stats.poisson.cdf([-1, *edges, np.inf], mean)) * len(counts)
    keep = expected > 5
    rest = [seen[~keep].sum()], [expected[~keep].sum()]
    if rest[1][0] > 5:
        seen, expected = np.append(seen[keep], rest[0]), np.append(expected[keep], rest[1])
    else:
        seen, expected = seen[keep], expected[keep]
    assert stats.chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > P_VALUE


# By inversion, about the limit, by rejection.
MEANS = (0.01, 0.3, 1.0, 7.5, 12.75, 31.9, 32.0, 32.1, 60.0, 400.0, 1e4, 1e6)


@pytest.mark.parametrize("mean", MEANS)
def test_distribution(mean):
    factor = 0.5  # exact
    counts = disturb("shot", [np.full(N, mean * factor, "f4")], factor=factor)[0] / factor
    assert (counts == np.round(counts)).all()
    check_poisson(counts, float(np.float32(mean * factor)) / factor)


@pytest.mark.parametrize("value, factor", [(250, 20.0), (250, 4.0), (100, 8.0), (60, 2.0), (3, 1.0)])
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i4", "i8"])
def test_integers(value, factor, dtype):
    value = min(value, 100 if dtype == "i1" else 255)
    got = disturb("shot", [np.full(N, value, dtype)], factor=factor)[0]
    if dtype not in ("u1", "i1"):
        check_poisson(got / factor, value / factor)
    else:
        top = np.iinfo(dtype).max
        clamped = got == top
        p = stats.poisson.sf(np.ceil(top / factor) - 1, value / factor)
        assert (got[~clamped] % factor == 0).all()
        assert stats.binomtest(int(clamped.sum()), N, p).pvalue > P_VALUE
        mean = np.minimum(stats.poisson.rvs(value / factor, size=10**6, random_state=1) * factor, top)
        assert abs(got.mean() - mean.mean()) < 5 * mean.std() / np.sqrt(N)


def test_fractions_are_rounded():
    got = disturb("shot", [np.full(N, 10, "u1")], factor=2.5)[0]
    assert set(got[got < 14].tolist()) <= {0, 3, 5, 8, 10, 13}


def test_large_means_are_normal():
    for mean in (1e8, 2e9, 1e15):
        got = disturb("shot", [np.full(N, int(mean), "i8")], factor=1.0)[0].astype("f8")
        assert stats.kstest((got - mean) / np.sqrt(mean), "norm").pvalue > P_VALUE


def test_neighbours_are_independent():
    got = disturb("shot", [np.full(4 * N, 3, "u1")], factor=1.0)[0].reshape(-1, 8)
    for distance in (1, 2, 3, 4):
        table = np.histogram2d(np.minimum(got[:, 0], 6), np.minimum(got[:, distance], 6), 7)[0]
        assert stats.chi2_contingency(table).pvalue > P_VALUE


def test_many_values_at_once():
    """An image of all values: the tables of bytes are those of single numbers (as small samples make them)."""
    x = np.random.default_rng(0).integers(0, 256, 5000).astype("u1")
    whole = disturb("shot", [x], factor=5.0)[0]
    np.testing.assert_array_equal(whole[:4000], disturb("shot", [x[:4000]], factor=5.0)[0])


def test_what_stays():
    x = np.float32([5, 0.5, 1e30])
    np.testing.assert_array_equal(disturb("shot", [x], factor=0.0)[0], x)
    got = disturb("shot", [np.float32([0, -3, -np.inf, np.inf, np.nan])], factor=2.0)[0]
    np.testing.assert_array_equal(got, [0, 0, 0, np.inf, np.nan])
    for dtype in TYPES:
        assert disturb("shot", [np.zeros(3, dtype)])[0].tolist() == [0] * 3
    assert disturb("shot", [np.full(5000, -7, "i1")])[0].any() == 0


def test_arguments_that_differ_from_sample_to_sample():
    factors = [np.float32(v) for v in (0, 1, 4, 16)]
    for x, f in zip(disturb("shot", [np.full(N, 100, "u2")] * 4, factor=factors), factors):
        assert abs(x.mean() - 100) < 2 and abs(x.std() - np.sqrt(100 * f)) < 1


def test_errors():
    for factor in (-1.0, float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="`factor` must be a positive number or 0; got"):
            disturb("shot", [np.zeros(3, "u1")], factor=factor)
