# SPDX-License-Identifier: Apache-2.0
"""Numbers are computed from Philox's words by the formulas, to the last digits: distribution tests would not detect an
error of 0.1 %."""

import numpy as np
import pytest
from draws import draw

from penstock import types
from penstock.core import rng

N = 4096


def words():
    """The words of the first sample of the first operator for seed 9."""
    return rng.Random(rng.key(9, 0), np.zeros(1, "u4"), np.zeros(1, "u8")).bits(2 * N)[0]


def units():
    """N numbers in [0, 1) of 53 bits each."""
    high, low = words().reshape(-1, 2).astype("u8").T
    return (high * 2**21 + (low >> np.uint64(11))) / 2.0**53


def box_muller(u, v):
    """Pairs side by side; u in (0, 1]."""
    radius, angle = np.sqrt(-2 * np.log(u)), 2 * np.pi * v
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()


def test_normal_in_double_precision():
    u = units()
    want = box_muller(1 - u[::2], u[1::2])
    got = draw("normal", 1, shape=[N], dtype=types.FLOAT64, seed=9)[0]
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=3e-15)
    scaled = draw("normal", 1, shape=[N], dtype=types.FLOAT64, seed=9, mean=3.0, stddev=0.5)[0]
    np.testing.assert_allclose(scaled, 3 + 0.5 * want, rtol=1e-14)


def test_normal_in_single_precision():
    u, v = words()[:N].reshape(-1, 2).astype("f8").T / 2**32
    want = box_muller(u + 2.0**-32, v)
    got = draw("normal", 1, shape=[N], seed=9)[0]
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


def test_uniform():
    np.testing.assert_array_equal(draw("uniform", 1, shape=[N], dtype=types.FLOAT64, seed=9)[0], 2 * units() - 1)
    coarse = words()[:N] / 2.0**32
    np.testing.assert_array_equal(draw("uniform", 1, shape=[N], seed=9)[0], (2 * coarse - 1).astype("f4"))
    flips = draw("coin_flip", 1, shape=[N], seed=9, probability=0.25)[0]
    np.testing.assert_array_equal(flips, (coarse < 0.25).astype("i4"))
    chosen = draw("uniform", 1, shape=[N], seed=9, values=[5.0, -1.0, 2.0])[0]
    np.testing.assert_array_equal(chosen, np.float32([5, -1, 2])[(coarse * 3).astype(int)])


def gamma(shape, z, u):
    """Marsaglia and Tsang's variate, NaN where it is rejected."""
    d = shape - 1 / 3
    v = (1 + z / np.sqrt(9 * d)) ** 3
    with np.errstate(invalid="ignore"):
        return np.where((v > 0) & (np.log(u) < 0.5 * z * z + d - d * v + d * np.log(v)), d * v, np.nan)


@pytest.mark.parametrize("alpha, beta", [(1.0, 1.0), (2.0, 7.5), (0.5, 3.0), (0.25, 0.75)])
def test_beta(alpha, beta):
    """Where the first try is accepted for both."""
    random = rng.Random(rng.key(9, 0), np.zeros(1, "u4"), np.zeros(1, "u8"))
    w, p = (((random.bits(4 * N, stream=s)[0] + 0.5) / 2**32).reshape(-1, 4) for s in (1, 2))
    z = box_muller(w[:, 0], w[:, 1] - 2.0**-33).reshape(-1, 2)
    logs = []
    for k, shape in enumerate((alpha, beta)):
        variate = np.log(gamma(shape + (shape < 1), z[:, k], w[:, 2 + k]))
        logs.append(variate + (np.log(p[:, k]) / shape if shape < 1 else 0))
    want = 1 / (1 + np.exp(logs[1] - logs[0]))
    got = draw("beta", 1, shape=[N], dtype=types.FLOAT64, alpha=alpha, beta=beta, seed=9)[0]
    accepted = np.isfinite(want)
    assert 0.85 < accepted.mean() < 1
    np.testing.assert_allclose(got[accepted], want[accepted], rtol=1e-12)
