# SPDX-License-Identifier: Apache-2.0
"""The resampling kernel compared with its definition, its loops with each other, and its windows with whole images."""

import numpy as np
import pytest

from penstock.core import kernels
from penstock.core.op import Arguments
from penstock.operators.geometry._resampling import source_windows
from resampling_reference import GAUSSIAN, LANCZOS3, NN, SUPPORT, finish, resample, under, weights

PLAIN, AVX2, AVX512 = range(3)
DTYPES = {"u1": 0, "u2": 1, "i2": 5, "f4": 9}


@pytest.fixture(scope="module")
def pool():
    return kernels.Pool(1)


@pytest.fixture
def limit():
    """Selects the loops of an instruction set."""
    yield kernels.library().resample_limit
    kernels.library().resample_limit(AVX512)


def run(
    pool,
    x,
    axis,
    size,
    lo=None,
    hi=None,
    min_filter=1,
    mag_filter=1,
    antialias=True,
    dtype=None,
    window=None,
    source=None,
):
    """Resamples `window` (begin, end) of the output from the part `source` (begin, end) of the input."""
    k = kernels.kernel("resample/resample")
    n = len(size)
    full = x.shape[axis : axis + n]
    args = np.zeros(1, k.args)
    lo, hi = (np.zeros(n), full) if lo is None else (lo, hi)
    begin, end = (np.zeros(n, int), np.array(size)) if window is None else window
    for name, v in (("roi_start", lo), ("roi_end", hi), ("in_size", full), ("out_size", size), ("out_origin", begin)):
        args[name][0, :n] = v
    if source is not None:
        args["in_origin"][0, :n] = source[0]
        x = x[(slice(None),) * axis + tuple(slice(*r) for r in zip(*source))]
    args["first_axis"], args["n_axes"], args["min_filter"], args["mag_filter"] = axis, n, min_filter, mag_filter
    args["antialias"] = antialias
    x = np.ascontiguousarray(x)
    shape = (*x.shape[:axis], *(np.array(end) - begin), *x.shape[axis + n :])
    guarded = np.full(int(np.prod(shape)) + 64, 99, dtype or x.dtype)
    out = guarded[:-64].reshape(shape)
    rows = []
    for a in (out, x):
        t = np.zeros(1, kernels.TENSOR)
        t["data"], t["shape"][0, : a.ndim], t["ndim"], t["dtype"] = (
            a.ctypes.data,
            a.shape,
            a.ndim,
            DTYPES[a.dtype.str[1:]],
        )
        rows.append(t)
    outcome = kernels.Outcome(np.zeros(1, "i4"), 1, 1)
    pool.run([kernels.Step(k, args, [(rows[0], -1)], [(rows[1], -1)])], 1, outcome)
    assert not outcome.status[0], outcome.reason(0)
    assert (guarded[-64:] == 99).all(), "wrote behind the output"
    return out


def random_case(rng, channels=None, largest=90):
    """Arguments of `run` for an image, its region of interest anywhere inside it."""
    h, w, c = (
        int(rng.integers(1, largest)),
        int(rng.integers(1, largest)),
        channels or int(rng.choice([1, 2, 3, 3, 4, 5, 17])),
    )
    size = rng.integers(1, largest, 2)
    kwargs = {
        "min_filter": int(rng.integers(0, 6)),
        "mag_filter": int(rng.integers(0, 6)),
        "antialias": bool(rng.random() < 0.7),
    }
    if rng.random() < 0.6:
        a, b = rng.uniform(0, 0.45, 2) * (h, w), rng.uniform(0.55, 1, 2) * (h, w)
        flip = rng.random(2) < 0.3
        kwargs |= {"lo": np.where(flip, b, a), "hi": np.where(flip, a, b)}
    return (h, w, c), size, kwargs


def test_uint8_is_within_one_step_of_the_definition(pool):
    rng = np.random.default_rng(1)
    different = total = 0
    for _ in range(400):
        shape, size, kwargs = random_case(rng)
        x = rng.integers(0, 256, shape, "u1")
        exact = resample(x, 0, size, **kwargs)
        got = run(pool, x, 0, size, **kwargs)
        assert np.abs(got - np.clip(exact, 0, 255)).max() <= 0.75, (shape, size, kwargs)
        different += (got != finish(exact, "u1")).sum()
        total += got.size
    assert different < 0.005 * total


def test_uint8_extremes_saturate(pool):
    rng = np.random.default_rng(2)
    for f in (NN, 1, 2, LANCZOS3, 4, GAUSSIAN):
        for size in ((37, 51), (9, 200)):
            x = rng.choice(np.array([0, 255], "u1"), (40, 30, 3))
            exact = resample(x, 0, size, min_filter=f, mag_filter=f)
            assert np.abs(run(pool, x, 0, size, min_filter=f, mag_filter=f) - np.clip(exact, 0, 255)).max() <= 0.75
            assert (run(pool, np.full((40, 30, 3), 255, "u1"), 0, size, min_filter=f, mag_filter=f) == 255).all()


@pytest.mark.parametrize(
    "dtype, out", [("u1", "f4"), ("u2", "u2"), ("u2", "f4"), ("i2", "i2"), ("i2", "f4"), ("f4", "f4")]
)
def test_other_types(pool, dtype, out):
    rng = np.random.default_rng(3)
    scale = {"u1": 255, "u2": 65535, "i2": 32768, "f4": 1}[dtype]
    for _ in range(60):
        shape, size, kwargs = random_case(rng, largest=40)
        x = (rng.uniform(-1 if dtype in ("i2", "f4") else 0, 1, shape) * scale).astype(dtype)
        exact = resample(x, 0, size, **kwargs)
        got = run(pool, x, 0, size, dtype=out, **kwargs)
        if out == "f4":
            np.testing.assert_allclose(got, exact, rtol=0, atol=2e-5 * scale)
        else:
            assert np.abs(got.astype("f8") - finish(exact, out)).max() <= 1


@pytest.mark.parametrize("axis, shape", [(1, (2, 9, 11)), (0, (9, 11, 4)), (2, (2, 3, 9, 11, 3))])
def test_leading_axes_are_planes(pool, axis, shape):
    x = np.random.default_rng(4).integers(0, 256, shape, "u1")
    np.testing.assert_allclose(run(pool, x, axis, (7, 20)), finish(resample(x, axis, (7, 20)), "u1"), atol=1)


@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_volumes(pool, dtype):
    rng = np.random.default_rng(5)
    for _ in range(40):
        n, m, c = rng.integers(1, 14, 3), rng.integers(1, 20, 3), int(rng.integers(1, 4))
        x = rng.integers(0, 256, (2, *n, c)).astype(dtype)
        f = int(rng.integers(0, 5))
        exact = resample(x, 1, m, min_filter=f, mag_filter=f)
        got = run(pool, x, 1, m, min_filter=f, mag_filter=f)
        np.testing.assert_allclose(
            got, np.clip(exact, 0, 255) if dtype == "u1" else exact, rtol=0, atol=0.75 if dtype == "u1" else 4e-3
        )


@pytest.mark.parametrize("level", [AVX2, AVX512])
def test_instruction_sets_agree_bit_for_bit(pool, limit, level):
    rng = np.random.default_rng(6)
    for i in range(300):
        shape, size, kwargs = random_case(rng, largest=150)
        x = rng.integers(0, 256, shape, "u1")
        limit(PLAIN)
        want = run(pool, x, 0, size, **kwargs)
        limit(level)
        np.testing.assert_array_equal(run(pool, x, 0, size, **kwargs), want, err_msg=f"{i}: {shape} {size} {kwargs}")


def ranges(shape, size, kwargs, begin, end):
    a = Arguments(1, None, {"antialias": kwargs["antialias"], "rule": "dali"})
    a.start = np.array([kwargs.get("lo", np.zeros(2))], "f8")
    a.end = np.array([kwargs.get("hi", shape[:2])], "f8")
    a.size = np.array([size], "i8")
    a.min, a.mag = np.array([kwargs["min_filter"]], "i4"), np.array([kwargs["mag_filter"]], "i4")
    begin, end = np.array([begin], "i8"), np.array([end], "i8")
    lo, count = source_windows(a, np.array([shape[:2]], "i8"), slice(0, 2), begin, end - begin)
    return lo[0], lo[0] + count[0]


@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_windows_have_the_pixels_of_the_whole(pool, dtype):
    """A window computed only from the part of the input given by source_windows, and from random larger parts."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        shape, size, kwargs = random_case(rng)
        x = rng.integers(0, 256, shape).astype(dtype)
        begin = rng.integers(0, size)
        end = rng.integers(begin, size) + 1
        whole = run(pool, x, 0, size, **kwargs)[begin[0] : end[0], begin[1] : end[1]]
        lo, hi = ranges(shape, size, kwargs, begin, end)
        for more in (0, 3):
            source = (
                np.maximum(lo - rng.integers(0, more + 1, 2), 0),
                np.minimum(hi + rng.integers(0, more + 1, 2), shape[:2]),
            )
            part = run(pool, x, 0, size, window=(begin, end), source=source, **kwargs)
            np.testing.assert_array_equal(part, whole, err_msg=f"{shape} {size} {kwargs} {begin} {end}")


def test_source_windows_are_exact():
    """Every input sample strictly inside a filter is included, and at most one more at each end."""
    rng = np.random.default_rng(8)
    for _ in range(300):
        shape, size, kwargs = random_case(rng)
        begin = rng.integers(0, size)
        end = rng.integers(begin, size) + 1
        lo, hi = ranges(shape, size, kwargs, begin, end)
        for d in range(2):
            a, b = (kwargs["lo"][d], kwargs["hi"][d]) if "lo" in kwargs else (0, shape[d])
            f = (
                kwargs["min_filter"]
                if np.float32(size[d]) < abs(np.float32(b) - np.float32(a))
                else kwargs["mag_filter"]
            )
            if f == NN:
                rows = [weights(f, shape[d], size[d], a, b, True, innermost) for innermost in {True, d == 1}]
                used = sum(rows)[begin[d] : end[d]].any(axis=0).nonzero()[0]
            else:
                taps, distance = zip(
                    *(under(f, size[d], a, b, kwargs["antialias"], j) for j in range(begin[d], end[d]))
                )
                inside = np.abs(np.concatenate(distance)) < SUPPORT[f] - 1e-9
                used = np.unique(np.clip(np.concatenate(taps)[inside], 0, shape[d] - 1))
            assert lo[d] <= used[0] and used[-1] < hi[d], (shape, size, kwargs)
            assert used[0] - lo[d] <= 1 and hi[d] - 1 - used[-1] <= 1, (shape, size, kwargs, lo, hi, used)


def test_a_window_that_is_too_small_is_an_error(pool):
    with pytest.raises(AssertionError, match=r"internal error.*window"):
        run(pool, np.zeros((20, 20, 3), "u1"), 0, (10, 10), source=(np.array([0, 0]), np.array([20, 15])))
