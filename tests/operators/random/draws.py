# SPDX-License-Identifier: Apache-2.0
"""Draws of the random operators, and tests of their distributions."""

import numpy as np
from scipy import stats

from penstock import fn, pipeline_def

N = 20000


def draw(op, batch_size=64, iterations=1, num_threads=2, depth=2, seed=5, **kwargs):
    """(iterations * batch_size, ...) numbers of fn.random.<op>."""

    @pipeline_def(batch_size=batch_size, num_threads=num_threads, prefetch_queue_depth=depth, seed=seed)
    def pipe():
        return getattr(fn.random, op)(**kwargs)

    p = pipe()
    return np.concatenate([np.array(p.run()[0].as_array()) for _ in range(iterations)])


def many(op, **kwargs):
    """N numbers as one sample (a kernel), as samples of one number (batch-wise), and with a few per sample."""
    yield draw(op, 1, shape=[N], **kwargs).ravel()
    yield draw(op, 1000, N // 1000, **kwargs).ravel()
    yield draw(op, 500, N // 1000, shape=[2], **kwargs).ravel()


def check_continuous(op, kwargs, expected):
    """Kolmogorov-Smirnov, and independence of neighbours, at every way to draw."""
    for x in many(op, **kwargs):
        assert x.dtype == (np.float64 if "dtype" in kwargs else np.float32)
        assert stats.kstest(x, expected.cdf).pvalue > 1e-4
        # Pairs of neighbours are independent: a Kolmogorov-Smirnov test would not see it if they were not.
        ranks = expected.cdf(x.astype("f8"))
        counts = np.histogram2d(ranks[::2], ranks[1::2], 8, [(0, 1), (0, 1)])[0]
        assert stats.chisquare(counts.ravel()).pvalue > 1e-4


def check_discrete(op, kwargs, frequencies):
    """Chi-square of the values seen against their frequencies."""
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
