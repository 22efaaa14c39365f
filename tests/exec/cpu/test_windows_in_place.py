# SPDX-License-Identifier: Apache-2.0
"""If a window covers the whole image, it is computed directly in the chain's output; shifted or padded windows stay
correct."""

import numpy as np
import pytest
from PIL import Image

from encoded_images import encode
from penstock import fn, pipeline_def

PICTURE = np.random.default_rng(0).integers(0, 256, (24, 31, 3), "u1")
WINDOWS = {
    "whole": {"start": [0, 0, 0], "shape": [24, 31, 3], "axes": [0, 1, 2]},
    "inside": {"start": [3, 4], "shape": [10, 11], "axes": [0, 1]},
    "other channels": {"start": [1], "shape": [3], "axes": [2]},
    "channels before": {"start": [-1], "shape": [3], "axes": [2]},
    "beyond": {"start": [5, -4], "shape": [24, 31], "axes": [0, 1]},
    "reversed order of axes": {"start": [2, 5], "shape": [31, 24], "axes": [1, 0]},
}


def cut(x, start, shape, axes, fill):
    for first, size, axis in zip(start, shape, axes):
        index = np.arange(first, first + size)
        inside = (index >= 0) & (index < x.shape[axis])
        taken = np.moveaxis(x.take(np.clip(index, 0, x.shape[axis] - 1), axis), axis, 0).copy()
        taken[~inside] = fill
        x = np.moveaxis(taken, 0, axis)
    return x


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("origin", ["decoded", "computed"])
def test_windows_of_what_the_chain_makes(name, origin):
    window = WINDOWS[name]

    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        if origin == "decoded":
            x = fn.decoders.image(fn.external_source(source=lambda i: [encode(Image.fromarray(PICTURE), "PNG")] * 3))
        else:
            x = fn.flip(fn.external_source(source=lambda i: [PICTURE[:, ::-1]] * 3, layout="HWC"), horizontal=1)
        return fn.slice(x, **window, out_of_bounds_policy="pad", fill_values=7)

    p = pipe()
    for _ in range(2):
        (out,) = p.run()
        for i in range(3):
            np.testing.assert_array_equal(out.at(i), cut(PICTURE, **window, fill=7))
