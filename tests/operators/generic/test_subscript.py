# SPDX-License-Identifier: Apache-2.0
"""Indices and slices of samples (fn.subscript) compared with NumPy, and their syntax: x[1:, ..., -3:]."""

import itertools
import random
from types import FunctionType

import numpy as np
import pytest

from penstock import PipelineError, fn, newaxis, pipeline_def

SHAPES = ((5, 6, 3), (1, 1, 1), (4, 9, 2), (7, 3, 5))


def samples(dtype="u1", shapes=SHAPES):
    rng = np.random.default_rng(4)
    return [rng.integers(0, 2 if dtype == "?" else 100, s).astype(dtype) for s in shapes]


def run(key, x=None, layout="HWC", columns=(), before=None, device="cpu"):
    x = samples() if x is None else x

    @pipeline_def(batch_size=len(x), num_threads=1, device_id=0 if device == "gpu" else None)
    def pipe():
        data = fn.external_source(source=lambda i: x, layout=layout)
        data = data.gpu() if device == "gpu" else data
        nodes = [fn.external_source(source=lambda i, c=c: [np.asarray(v) for v in c]) for c in columns]
        data = data if before is None else before(data)
        return (key(data, *nodes) if isinstance(key, FunctionType) else data[key]), data

    out = pipe().run()[0]
    assert type(out).__name__ == ("TensorListGPU" if device == "gpu" else "TensorListCPU")
    out = out.as_cpu()
    return [np.asarray(out.at(i)) for i in range(len(x))], out.layout()


def numpy_key(key):
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(None if isinstance(p, type(newaxis)) else p for p in parts)


KEYS = [
    *(0, -1, slice(None), slice(1, None), slice(None, 2), slice(-3, -1), slice(100, None), slice(None, 100)),
    *(slice(-100, None), slice(None, -100), slice(3, 1), slice(None, None, 2), slice(None, None, -1)),
    *(slice(-2, None, -2), slice(1, 100, 3), slice(None, 1, -1), slice(5, 2, -1), slice(2, 5, -1)),
    *((0, 0), (slice(1, 3), 0), (0, 0, 0), (slice(None), -1, slice(0, 1)), (slice(1, 2), slice(1, 3), slice(0, 1))),
    *(Ellipsis, (Ellipsis, 0), (slice(1, None), Ellipsis, slice(-3, None)), (Ellipsis, slice(1, None), slice(None))),
    *((0, Ellipsis), (Ellipsis, 0, 0, 0), (0, Ellipsis, slice(None, None, -1)), ()),
    *(newaxis, (slice(None), newaxis), (Ellipsis, newaxis), (0, newaxis), (newaxis, slice(1, None), newaxis, 0)),
]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_as_numpy(key, device):
    got, _ = run(key, device=device)
    for g, x in zip(got, samples()):
        want = x[numpy_key(key)]
        assert g.shape == want.shape and g.dtype == want.dtype
        np.testing.assert_array_equal(g, want)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "i4", "f4", "i8", "f8", "?"])
def test_types(dtype, device):
    x = samples(dtype)
    for key in ((slice(None, None, -1), slice(1, None)), (Ellipsis, -1), (slice(None), 0)):
        for g, want in zip(run(key, x, device=device)[0], x):
            assert g.dtype == want.dtype
            np.testing.assert_array_equal(g, want[key])


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
def test_long_rows_on_the_gpu(dtype):
    """Sixteen bytes at a time, from any position, forwards and backwards, across the ends of rows."""
    x = samples(dtype, ((9, 70, 3), (2, 33, 1), (0, 5, 2), (1, 300, 5), (40, 17, 4)))
    for key in (
        (slice(None), slice(1, None)),
        (slice(1, None), slice(2, -1)),
        (slice(None, None, -1), slice(None, None, -1), slice(None, None, -1)),
        (slice(None), slice(None, None, -1), 0),
        (slice(None, None, 2),),
        (Ellipsis, slice(None, None, 2)),
        (slice(None), slice(3, None, 3)),
    ):
        for g, want in zip(run(key, x, device="gpu")[0], x):
            np.testing.assert_array_equal(g, want[key], err_msg=str(key))


def test_made_up_keys():
    r = random.Random(5)

    def part():
        bound = lambda: r.choice([None, *range(-4, 5)])  # noqa: E731
        step = r.choice([None, None, 1, 2, 3, -1, -2, -3])
        return r.choice([0, -1, slice(bound(), bound(), step), slice(bound(), bound(), step)])

    x = samples("i4", ((3, 4, 2, 5), (1, 2, 3, 1), (4, 1, 1, 2)))
    for i in range(120):
        key = tuple(part() for _ in range(r.randint(1, 4)))
        for device in ("cpu", "gpu")[: 1 + (i % 6 == 0)]:
            for g, want in zip(run(key, x, "ABCD", device=device)[0], x):
                np.testing.assert_array_equal(g, want[key], err_msg=str(key))


def test_layouts():
    named = (newaxis("A"), slice(None), newaxis("B"), 0)
    for key, want in ((0, "WC"), ((slice(None), 0), "HC"), (slice(1, None), "HWC"), ((Ellipsis, 0), "HW")):
        assert run(key)[1] == want
    assert run(named)[1] == "AHBC" and run(newaxis)[1] == "" and run((0, 0, 0))[1] == ""


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_subscripts_that_differ_from_sample_to_sample(device):
    i, j, s = [1, 0, -1, 2], [2, 0, 3, 1], [1, -1, 2, -2]
    x = samples()
    for key in (
        lambda d, i, j, s: d[i],
        lambda d, i, j, s: d[i:],
        lambda d, i, j, s: d[:j, i - i],
        lambda d, i, j, s: d[::s, ..., 0],
        lambda d, i, j, s: d[i:j:s],
    ):
        for k, g in enumerate(run(key, columns=(np.int32(i), np.int32(j), np.int32(s)), device=device)[0]):
            np.testing.assert_array_equal(g, key(x[k], i[k], j[k], s[k]))


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_only_the_region_is_made(device):
    """A preceding decoder or resize computes only the region, with the same values."""
    x = samples(shapes=((40, 50, 3), (33, 20, 3)))

    def resized(d):
        return fn.resize(d, size=[30, 40])

    for key in ((slice(5, 20), slice(10, 12)), (slice(None, None, -3), slice(7, 30, 4), 1), (3, 4)):
        inside, _ = run(lambda d, key=key: resized(d)[key], x, device=device)
        outside, _ = run(key, run(lambda d: resized(d), x, device=device)[0])
        for a, b in itertools.zip_longest(inside, outside):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "key, error, text",
    [
        (5, PipelineError, "index 5 is out of range for axis 0 of length 5"),
        (-2, PipelineError, "index -2 is out of range for axis 0 of length 1"),
        ((0, 0, 0, 0), PipelineError, "too many subscripts: 4 for an input of 3 dimensions"),
        ((Ellipsis, 0, Ellipsis), ValueError, "one ellipsis"),
        (slice(None, None, 0), ValueError, "the step of a slice can't be 0"),
        (1.5, TypeError, "an index is an integer, a DataNode of one integer for each sample, .*; got float"),
        ([0, 1], TypeError, "got list"),
        ((newaxis("A"), newaxis), ValueError, "either all new axes"),
    ],
)
def test_errors(key, error, text):
    with pytest.raises(error, match=text):
        run(key)


@pytest.mark.parametrize("end", [2**31, 2**40, 2**70, -(2**31) - 1, -(2**70)])
def test_slices_beyond_32_bits(end):  # cut to the data, as in Python
    x = samples()
    for key in (slice(None, end), slice(end, None), slice(None, None, abs(end)), (0, slice(1, end))):
        for a, b in zip(run(key, x)[0], x):
            np.testing.assert_array_equal(a, b[key])


def test_more_errors():
    with pytest.raises(PipelineError, match="too many subscripts: 1 for a scalar"):
        run(0, [np.int32(3)], None)
    with pytest.raises(PipelineError, match="new axes with names need an input with a layout"):
        run(newaxis("N"), layout=None)
    with pytest.raises(PipelineError, match="must be of integral type. Got: float32"):
        run(lambda d, i: d[i], columns=([np.float32(1)] * 4,))
    with pytest.raises(ValueError, match="the name of one axis"):
        newaxis("AB")
