# SPDX-License-Identifier: Apache-2.0
"""JPEG artefacts on the device are bit for bit those of libjpeg-turbo's encoder and our decoder."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec
from penstock.core.op import Arguments
from penstock.operators.color.jpeg_compression_distortion import JpegCompressionDistortion

# Narrow, odd and even, less and more than a macroblock, more than a group of 16 of them.
SIZES = ((1, 1), (2, 3), (9, 4), (4, 5), (17, 33), (16, 16), (34, 18), (35, 6), (7, 300), (130, 40), (0, 5))


def pictures(kind, sizes=SIZES):
    rng, out = np.random.default_rng(4), []
    for h, w in sizes:
        y, x = np.mgrid[:h, :w]
        smooth = 128 + 120 * np.sin((y[..., None] + [1, 5, 9]) / 7) * np.cos(x[..., None] / 11)
        noise = {"photo": rng.normal(0, 8, (h, w, 3)), "noise": rng.normal(0, 300, (h, w, 3)), "flat": 0}[kind]
        out.append(np.clip(smooth + noise, 0, 255).astype("u1"))
    return out


def segment(samples, quality, origin=None, stored=None):
    x = Spec(np.array([s.shape for s in samples]), samples[0].dtype, "HWC")
    out = x.like() if origin is None else x.windowed(np.array(origin), np.array(stored))
    a = Arguments(x.n, None, {"quality": np.broadcast_to(np.asarray(quality, "i4"), (x.n,))})
    columns = JpegCompressionDistortion({}).params(a, x, out)
    return Segment([Step("color/jpeg_compression", [1], [0], columns)], {0: x, 1: out}, {0: samples}, {1})


@pytest.mark.parametrize("kind", ("photo", "noise", "flat"))
def test_all_sizes_and_qualities(kind):
    samples = pictures(kind)
    segment(samples, np.arange(len(samples)) * 10 + 1).check(offsets=(0, 1, 2, 3))
    segment(samples, 100 - np.arange(len(samples))).check()
    segment(samples, 1).check()


def test_each_quality():
    """Black and white dots have the largest coefficients."""
    rng = np.random.default_rng(5)
    samples = [rng.integers(0, 2, (18, 17 + i % 16, 3), "u1") * 255 for i in range(100)]
    segment(samples, np.arange(100) + 1).check()


def test_windows():
    samples = pictures("photo", ((70, 90),) * 6)
    origin = [[0, 0, 0], [15, 17, 0], [33, 63, 0], [69, 89, 0], [16, 40, 0], [1, 2, 0]]
    stored = [[70, 90, 3], [20, 9, 3], [3, 27, 3], [1, 1, 3], [32, 50, 3], [68, 3, 3]]
    segment(samples, 30, origin, stored).check(offsets=(0, 1))
