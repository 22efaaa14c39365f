# SPDX-License-Identifier: Apache-2.0
import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.stats

from penstock import fn, pipeline_def


def draw(n=4, batches=1, **kwargs):
    pipe = pipeline_def(lambda: fn.batch_permutation(**kwargs), batch_size=n, seed=kwargs.pop("base", 5))()
    return [tuple(np.ravel(pipe.run()[0].as_array()).tolist()) for _ in range(batches)]


# Possible results, all equally likely.
ALL = {
    (False, False): set(itertools.permutations(range(4))),
    (False, True): {  # one cycle through all
        p for p in itertools.permutations(range(4)) if len({0, p[0], p[p[0]], p[p[p[0]]]}) == 4
    },
    (True, False): set(itertools.product(range(4), repeat=4)),
    (True, True): {p for p in itertools.product(range(4), repeat=4) if all(k != i for i, k in enumerate(p))},
}


@pytest.mark.parametrize("repeats, moves", ALL)
def test_distribution(repeats, moves):
    seen = Counter(draw(batches=20 * len(ALL[repeats, moves]), allow_repetitions=repeats, no_fixed_points=moves))
    assert set(seen) <= ALL[repeats, moves]
    counts = [seen[p] for p in ALL[repeats, moves]]
    assert scipy.stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("kwargs", [{}, {"no_fixed_points": True}, {"allow_repetitions": True}])
def test_a_single_sample(kwargs):
    assert draw(1, 3, **kwargs) == [(0,)] * 3


def test_type_and_determinism():
    pipe = pipeline_def(lambda: fn.batch_permutation(), batch_size=3)()
    (out,) = pipe.run()
    assert out.at(0).dtype == np.int32 and out.at(0).shape == ()
    assert draw(64, 3, seed=3) == draw(64, 3, seed=3) != draw(64, 3, seed=4)
