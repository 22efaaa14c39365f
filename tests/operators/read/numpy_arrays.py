# SPDX-License-Identifier: Apache-2.0
"""Arrays read by readers.numpy, and their regions by the definition."""

import numpy as np

from penstock import fn, pipeline_def


def build(batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        return fn.readers.numpy(name="r", **kwargs)

    return pipe()


def read(path, **kwargs):
    return np.array(build(files=[str(path)], **kwargs).run()[0].at(0))


def assert_same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


def rounded(x):
    return int(np.floor(abs(x) + 0.5) * np.sign(x))


def region(x, axes, start=None, rel_start=None, end=None, rel_end=None, shape=None, rel_shape=None):
    """(first, last) of each axis, by the definition: real numbers, rounded, halves away from zero."""
    first, last = [0] * x.ndim, list(x.shape)
    for i, axis in enumerate(axes):
        n = x.shape[axis]
        begin = start[i] if start else float(np.float32(rel_start[i]) * np.float32(n)) if rel_start else 0
        stop = n
        if end:
            stop = end[i]
        elif rel_end:
            stop = float(np.float32(rel_end[i]) * np.float32(n))
        elif shape:
            stop = begin + shape[i]
        elif rel_shape and rel_start:
            stop = (float(np.float32(rel_start[i])) + float(np.float32(rel_shape[i]))) * n
        elif rel_shape:
            stop = begin + float(np.float32(rel_shape[i]) * np.float32(n))
        first[axis], last[axis] = rounded(begin), rounded(stop)
    return first, last


STARTS = ({}, {"start": [1, 2, 3]}, {"rel_start": [0.3, 0.1, 0.55]})
ENDS = ({}, {"end": [5, 7, 10]}, {"rel_end": [0.9, 1.0, 0.75]}, {"shape": [3, 4, 2]}, {"rel_shape": [0.4, 0.6, 0.3]})
