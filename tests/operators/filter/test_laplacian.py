# SPDX-License-Identifier: Apache-2.0
import functools

import numpy as np
from scipy.ndimage import correlate1d

from harness import op_test, per_sample, saturate
from penstock import types


def smoothing(size):
    return functools.reduce(np.convolve, [[1.0, 1.0]] * (size - 1), np.ones(1))


def derivative(size):
    return np.convolve([1.0, -2.0, 1.0], smoothing(size - 2))


def summed(space):
    """The reference for inputs whose axes of space are `space`."""

    def reference(x, window_size=3, smoothing_size=None, scale=1.0, normalized_kernel=False, dtype=None):
        out = x.dtype if dtype is None else types.to_numpy_type(dtype)
        n = len(space)
        size, scale = np.broadcast_to(window_size, n), np.broadcast_to(scale, n)
        total = np.zeros(x.shape)
        for i in range(n) if x.size else ():
            others = np.full(n, size[i]) if smoothing_size is None else np.broadcast_to(smoothing_size, n)
            sizes = [int(size[j] if i == j else others[j]) for j in range(n)]
            factor = 2.0 ** (n + 2 - sum(sizes)) if normalized_kernel else scale[i]
            y = x.astype("f8")
            for j in range(n):
                w = derivative(sizes[j]) if i == j else smoothing(sizes[j])
                y = correlate1d(y, w, space[j], mode="mirror")
            total += factor * y
        return saturate(total, out)

    return reference


def odd(lo, hi, shape=(), frames=False):
    column = per_sample(lo // 2, hi // 2 + 1, shape, "i4", frames)
    return type(column)(lambda rng, s: 2 * column.make(rng, s) + 1, column.shape, frames, f"odd({lo},{hi})")


ARGS = [
    {},
    {"window_size": 5, "dtype": types.FLOAT},
    {"window_size": [3, 7], "smoothing_size": 1, "dtype": types.FLOAT},
    {"smoothing_size": [5, 1], "scale": [0.5, 2.0], "dtype": types.FLOAT},
    {"normalized_kernel": True, "window_size": 5, "dtype": types.FLOAT},
    {"normalized_kernel": True, "smoothing_size": 3},
    {"window_size": odd(3, 9), "scale": per_sample(-1, 1, (2,)), "dtype": types.FLOAT},
    {"smoothing_size": odd(1, 7, (2,)), "scale": 0.01},
    {"window_size": 31, "normalized_kernel": True, "dtype": types.FLOAT},
]
# DALI crashes on empty samples. Terms cancel, which leaves rounding of the larger ones.
SIZES = ((5, 4), (1, 1), (33, 17), (8, 67))
HALF = {"float16-HWC-window_size=5,dtype=FLOAT": "DALI rounds sums to float16 although the output is float32"}
CLOSE = {"steps": 1, "share": 0.02, "ulps": 64, "atol": 2e-3, "sizes": SIZES}
TestImages = op_test(
    "laplacian",
    summed((0, 1)),
    dtypes=("u1", "f4"),
    args=ARGS,
    errors=[
        ({"window_size": 4}, RuntimeError, "Window size must be an odd integer between 3 and 31, got"),
        ({"window_size": 1}, RuntimeError, "Window size must be an odd integer between 3 and 31, got"),
        ({"smoothing_size": 33}, RuntimeError, "Smoothing window size must be an odd integer between 1 and 31, got"),
        ({"normalized_kernel": True, "scale": 2.0}, ValueError, "leave out `scale`"),
        ({"scale": [1.0, 2.0, 3.0]}, RuntimeError, "`scale` has 3 values"),
    ],
    **CLOSE,
)
TestPlanes = op_test("laplacian", summed((1, 2)), layouts=("CHW",), args=ARGS[:4], **CLOSE)
TestTypes = op_test(
    "laplacian", summed((0, 1)), dtypes=("i2", "u2", "f2"), args=[{"scale": 0.1}, ARGS[1]], dali_differs=HALF, **CLOSE
)
TestVolumes = op_test(
    "laplacian",
    summed((0, 1, 2)),
    dtypes=("i2", "f4"),
    layouts=("DHWC", "FDHWC"),
    args=[{"scale": 0.01}, {"window_size": [3, 5, 7], "smoothing_size": [1, 3, 5], "scale": [0.001, 0.002, 0.003]}],
    **CLOSE,
)
TestPerFrame = op_test(
    "laplacian",
    summed((0, 1)),
    layouts=("FHWC",),
    args=[{"scale": per_sample(-1, 1, frames=True), "window_size": odd(3, 7, frames=True), "dtype": types.FLOAT}],
    **CLOSE,
)


def row(rng, case):
    return [rng.random(n).astype("f4") for n in (1, 30, 7)]


TestLines = op_test(
    "laplacian", summed((0,)), dtypes=("f4",), layouts=("W",), make_input=row, args=[{}, {"window_size": 7}], **CLOSE
)
