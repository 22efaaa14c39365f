# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from noise import TYPES, check_determinism, check_types, disturb
from scipy import stats

P_VALUE = 1e-4


def test_determinism():
    check_determinism("gaussian", mean=2.0, stddev=20.0)


def test_types():
    check_types("gaussian")


@pytest.mark.parametrize("mean, stddev", [(0.0, 1.0), (-7.0, 0.25), (100.0, 3.0), (5.0, -2.0)])
def test_distribution(mean, stddev):
    x = np.linspace(-3, 3, 20001, dtype="f4")
    noise = disturb("gaussian", [x], mean=mean, stddev=stddev)[0].astype("f8") - x
    expected = stats.norm(mean, abs(stddev))
    assert stats.kstest(noise, expected.cdf).pvalue > P_VALUE
    # Neighbours are independent, at every distance within a block of random words.
    ranks = expected.cdf(noise)
    for distance in (1, 2, 3, 4):
        a, b = ranks[: len(ranks) // 8 * 8].reshape(-1, 8)[:, [0, distance]].T
        assert stats.chisquare(np.histogram2d(a, b, 5, [(0, 1), (0, 1)])[0].ravel()).pvalue > P_VALUE


@pytest.mark.parametrize("dtype", TYPES[:-1])
def test_integers_are_rounded_and_clamped(dtype):
    """The frequency of every value."""
    info = np.iinfo(dtype)
    for center in (int(info.min), 3, int(info.max)):
        if abs(center) > 2**40:
            continue  # beyond what a double holds exactly
        got = disturb("gaussian", [np.full(20000, center, dtype)], stddev=1.5, seed=8)[0]
        values = np.arange(max(center - 4, int(info.min)), min(center + 4, int(info.max)) + 1)
        edges = np.array([-np.inf, *(values[1:] - 0.5 - center), np.inf])
        counts = [np.count_nonzero(got <= values[0]), *(np.count_nonzero(got == v) for v in values[1:-1])]
        counts.append(len(got) - sum(counts))
        assert got.min() >= info.min and got.max() <= info.max
        assert stats.chisquare(counts, np.diff(stats.norm(0, 1.5).cdf(edges)) * len(got)).pvalue > P_VALUE


def test_arguments_that_differ_from_sample_to_sample():
    n = 6
    means = [np.float32(i) for i in range(n)]
    deviations = [np.float32(i * 0.5) for i in range(n)]
    got = disturb("gaussian", [np.full(5000, 10, "f4")] * n, mean=means, stddev=deviations)
    for x, m, s in zip(got, means, deviations):
        assert abs(x.mean() - 10 - m) < 0.2 and abs(x.std() - s) < 0.1


def test_what_is_not_finite_or_large():
    got = disturb("gaussian", [np.float32([np.inf, np.nan, -np.inf])], stddev=1.0)[0]
    assert got[0] == np.inf and np.isnan(got[1]) and got[2] == -np.inf
    large = np.array([2**31 - 1, -(2**31), 2**30 + 1], "i4")
    assert disturb("gaussian", [large], stddev=0.0)[0].tolist() == large.tolist()
    assert disturb("gaussian", [np.uint8(7)], stddev=0.0)[0] == 7
