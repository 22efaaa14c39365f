# SPDX-License-Identifier: Apache-2.0
"""Choices against their frequencies."""

import numpy as np
import pytest
from draws import N
from scipy import stats

from penstock import fn, pipeline_def


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
