# SPDX-License-Identifier: Apache-2.0
"""Random numbers on the GPU are the same as on the CPU."""

import numpy as np
import pytest
from test_pipelines import assert_close, both

from penstock import fn, types

SHAPES = [(3, 5, 3), (0, 4, 1), (1, 1, 1), (17, 23, 2)]


def column(*values):
    return fn.external_source(source=lambda i: [np.float32(v) for v in values])


def draws(device, op, **kwargs):
    """A ragged shape as an input and as an argument, a constant shape, a scalar."""
    x = fn.external_source(source=lambda i: [np.zeros(s, "u1") for s in SHAPES], layout="HWC")
    shape = fn.external_source(source=lambda i: [np.int32(s) for s in SHAPES])
    call = getattr(fn.random, op)
    kwargs["device"] = device
    return call(x, **kwargs), call(shape=shape, **kwargs), call(shape=[5000], **kwargs), call(**kwargs)


INTEGERS = [types.DALIDataType[s + str(8 * n)] for s in ("INT", "UINT") for n in (1, 2, 4, 8)]
KINDS = [
    ("uniform", {"range": (-3.0, 200.0)}, (*INTEGERS, types.FLOAT, types.FLOAT64)),
    ("normal", {"mean": 100.0, "stddev": 60.0}, (*INTEGERS, types.FLOAT, types.FLOAT64)),
    ("uniform", {"values": [1.0, 7.0, 250.0]}, (types.UINT8, types.FLOAT)),
    ("coin_flip", {"probability": 0.3}, (types.UINT8, types.INT32)),
    ("beta", {"alpha": 2.0, "beta": 5.0}, (types.FLOAT, types.FLOAT64)),
    ("beta", {"alpha": 0.3, "beta": 7.0}, (types.FLOAT, types.FLOAT64)),
]


@pytest.mark.parametrize("op, kwargs, dtype", [(op, kwargs, t) for op, kwargs, dtypes in KINDS for t in dtypes])
def test_as_on_the_cpu(op, kwargs, dtype):
    for got, want in both(
        lambda d: draws(d, op, dtype=dtype, **kwargs), n=2 if dtype == types.FLOAT else 1, batch_size=4
    ):
        for g, w in zip(got, want):
            assert_close(g, w)


def test_types_by_default_and_bool():
    def define(d):
        r = fn.random
        kwargs = {"device": d, "shape": [7]}
        flips = r.coin_flip(dtype=types.BOOL, **kwargs)
        return r.uniform(**kwargs), r.normal(**kwargs), r.coin_flip(**kwargs), flips

    for got, want in both(define, batch_size=4):
        for g, w in zip(got, want):
            assert_close(g, w)


def test_arguments_per_sample():
    def define(d):
        r, kwargs = fn.random, {"device": d, "shape": [40]}
        return (
            r.uniform(range=column([1, 2], [10, 20], [-5, -4]), **kwargs),
            r.uniform(values=column([1, 2], [10, 20], [-5, -4]), **kwargs),
            r.uniform(values=column([1], [10, 20, 30], [-5, -4]), **kwargs),
            r.normal(mean=column(5, 6, 7), stddev=column(0, 1, 2), **kwargs),
            r.coin_flip(probability=column(0, 0.5, 1), **kwargs),
            r.beta(alpha=column(0.5, 1, 20), beta=column(3, 0.1, 0.9), **kwargs),
        )

    for got, want in both(define):
        for g, w in zip(got, want):
            assert_close(g, w)


def test_made_on_the_gpu_and_used_there():
    def define(d):
        x = fn.external_source(source=lambda i: [np.full((4, 6, 3), 10 * k, "u1") for k in range(3)], layout="HWC")
        x = x.gpu() if d == "gpu" else x
        noise = fn.random.normal(x, stddev=5.0)  # on the device of its input
        assert noise.device == d and noise.source.device == d
        return fn.cast(x + noise, dtype=types.UINT8), fn.random.uniform(device=d) * 2

    for got, want in both(define):
        for g, w in zip(got, want):
            assert_close(g, w)


def test_floats_stay_below_the_upper_end():
    def define(d):
        return (fn.random.uniform(device=d, shape=[20000], range=(16777214.0, 16777216.0)),)

    for got, _ in both(define, n=1, batch_size=1):
        assert set(np.unique(got[0].at(0))) == {16777214, 16777215}
