# SPDX-License-Identifier: Apache-2.0
"""Resampling by its definition, in float64, with a matrix of weights for each axis."""

import itertools

import numpy as np

NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = range(6)
EPSILON = 1e-5  # of a pixel: DALI adds up float32 coordinates from row to row
SUPPORT = {LINEAR: 1, CUBIC: 2, LANCZOS3: 3, TRIANGULAR: 1, GAUSSIAN: 1}


def ideal(f, x):
    """The filters: Keys' cubic with a = -1/2 (1981), windowed sinc (Duchon 1979), exp(-4 x^2)."""
    x = np.abs(x)
    if f == CUBIC:
        near, far = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
        return np.where(x < 1, near, np.where(x < 2, far, 0))
    if f == LANCZOS3:
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    if f == GAUSSIAN:
        return np.where(x <= 1, np.exp(-4 * x * x), 0)
    return np.maximum(0, 1 - x)


def kernel(f, x):
    """The filter, interpolated linearly between 32 nodes per unit if not linear itself. Therefore the Gaussian, which
    is not zero at its edge, falls to zero beyond it."""
    if f in (LINEAR, TRIANGULAR):
        return ideal(f, x)
    nodes = np.arange(32 * SUPPORT[f] + 2) / 32
    return np.interp(np.abs(x), nodes, ideal(f, nodes))


def weights(f, n, m, lo, hi, antialias, innermost=True):
    """(m, n) weights of n input samples for m outputs that cover lo .. hi."""
    w = np.zeros((m, n))
    if f == NN:  # float32 decides ties: from the region's first pixel on, and, but for the innermost axis, step by step
        step, half = (np.float32(hi) - np.float32(lo)) / np.float32(m), np.float32(0.5)
        base = max(np.floor(np.float32(min(lo, hi))), np.float32(0))
        begin = np.float32(lo) - base
        if innermost:
            at = begin + (np.arange(m, dtype="f4") + half) * step
        else:
            at = np.add.accumulate(np.float32([begin + half * step] + [step] * (m - 1)))
        w[np.arange(m), np.clip(np.floor(at) + base, 0, n - 1).astype(int)] = 1
        return w
    for j in range(m):
        taps, distance = under(f, m, lo, hi, antialias, j)
        row = kernel(f, distance)
        np.add.at(w[j], np.clip(taps, 0, n - 1), row / row.sum())
    return w


def under(f, m, lo, hi, antialias, j, low=0, more=0):
    """The input samples covered by the filter of output j, with coordinates offset by `low` and widths extended by
    `more`, and their distances from its centre in units of the filter."""
    scale = (hi - lo) / m
    stretch = max(abs(scale), 1) if antialias else 1
    radius = SUPPORT[f] * stretch
    center = (lo + 0.5 * scale - 0.5) + j * scale
    first = int(np.ceil(center - radius + low))
    taps = np.arange(first, first + int(np.ceil(2 * radius + more)))  # so DALI cuts the Gaussian behind its rim
    return taps, (taps - center) / stretch


def choices(f, n, m, lo, hi, antialias, innermost=True):
    """All possible `weights` with coordinate errors of up to EPSILON: the nearest sample may be either neighbour of a
    tie, and samples at the edge of a Gaussian may be included or not."""
    if f == NN:
        at = lo + (np.arange(m) + 0.5) * (hi - lo) / m
        nearest = (np.clip(np.floor(at + e).astype(int), 0, n - 1) for e in (-EPSILON, EPSILON))
        return [np.eye(n)[index] for index in nearest]
    if f != GAUSSIAN:
        return [weights(f, n, m, lo, hi, antialias)]
    found = []
    for low, more in itertools.product((-EPSILON, EPSILON), repeat=2):
        w = np.zeros((m, n))
        for j in range(m):
            taps, distance = under(f, m, lo, hi, antialias, j, low, more)
            row = kernel(f, distance)
            np.add.at(w[j], np.clip(taps, 0, n - 1), row / row.sum())
        found.append(w)
    return found


def resamplings(
    x, first_axis, size, lo=None, hi=None, min_filter=LINEAR, mag_filter=LINEAR, antialias=True, matrices=choices
):
    """float64 results of resampling len(size) axes of x, starting with `first_axis`, for each combination of
    `matrices`."""
    results = [x.astype("f8")]
    for d, m in enumerate(size):
        axis = first_axis + d
        n = x.shape[axis]
        a, b = (0, n) if lo is None else (lo[d], hi[d])
        if m == 0 or n == 0:
            shape = list(results[0].shape)
            shape[axis] = m if n == 0 else 0
            results = [np.zeros(shape)]
            continue
        f = min_filter if np.float32(m) < abs(np.float32(b) - np.float32(a)) else mag_filter
        each = matrices(f, n, m, a, b, antialias, d == len(size) - 1)
        results = [np.moveaxis(np.tensordot(w, r, (1, axis)), 0, axis) for w in each for r in results]
    return results


def resample(*args, **kwargs):
    """The result with coordinates in double precision (for NN, see `weights`)."""
    return resamplings(*args, **kwargs, matrices=lambda *a: [weights(*a)])[0]


def finish(x, dtype):
    """Rounds (ties away from zero) and saturates."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return x.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.trunc(x + np.copysign(0.5, x)), info.min, info.max).astype(dtype)
