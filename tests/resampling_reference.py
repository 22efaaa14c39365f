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


def weights(f, n, m, lo, hi, antialias, innermost=True, first=False):
    """(m, n) weights of n input samples for m outputs that cover lo .. hi. For NN, float32 decides ties: places count
    from the region's first pixel, but for the axis that comes `first`, and step by step, but for the innermost one."""
    w = np.zeros((m, n))
    if f == NN:
        step, half = (np.float32(hi) - np.float32(lo)) / np.float32(m), np.float32(0.5)
        base = np.float32(0) if first else np.clip(np.floor(np.float32(min(lo, hi))), np.float32(0), np.float32(n))
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


def choices(f, n, m, lo, hi, antialias, innermost=True, first=False):
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


def cheapest(extents, size, ends):
    """The axis that DALI resamples first. An axis costs 4, 4.2 or the innermost 4.4 for each element of its output."""
    inside = [np.clip((np.floor(np.float32(min(e))), np.ceil(np.float32(max(e)) + 1)), 0, n)
              for n, e in zip(extents, ends)]  # fmt: skip
    given = {d: int(high - low) for d, (low, high) in enumerate(inside)}
    if len(size) == 1:
        given, size = {0: 1, 1: given[0]}, (1, size[0])
    work = {len(size) - 1 - i: w for i, w in zip(range(len(size)), np.float32([1.4, 1.0, 1.2]))}

    def cost(order):
        now, total = dict(given), np.float32(0)
        for d in order:
            now[d] = size[d]
            elements = np.float32(np.prod([now[k] for k in now], dtype="i8"))
            total += work[d] * elements + elements * np.float32(3)
        return total

    first = min(itertools.permutations(sorted(given, reverse=True)), key=cost)[0]  # the innermost if several are equal
    return first - (len(given) - len(extents))


def resamplings(
    x, first_axis, size, lo=None, hi=None, min_filter=LINEAR, mag_filter=LINEAR, antialias=True, matrices=choices
):
    """float64 results of resampling len(size) axes of x, starting with `first_axis`, for each combination of
    `matrices`."""
    results = [x.astype("f8")]
    extents = x.shape[first_axis : first_axis + len(size)]
    ends = [(0, n) if lo is None else (lo[d], hi[d]) for d, n in enumerate(extents)]
    filters = [min_filter if np.float32(m) < abs(np.float32(b) - np.float32(a)) else mag_filter
               for m, (a, b) in zip(size, ends)]  # fmt: skip
    first = cheapest(extents, size, ends) if set(filters) == {NN} else -1
    for d, m in enumerate(size):
        axis = first_axis + d
        n = x.shape[axis]
        a, b = ends[d]
        if m == 0 or n == 0:
            shape = list(results[0].shape)
            shape[axis] = m if n == 0 else 0
            results = [np.zeros(shape)]
            continue
        each = matrices(filters[d], n, m, a, b, antialias, d == len(size) - 1, d == first)
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
