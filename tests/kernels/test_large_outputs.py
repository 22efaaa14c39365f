# SPDX-License-Identifier: Apache-2.0
"""Outputs of batches larger than the caches bypass them (kernels/core/stream.h)."""

import numpy as np
import pytest

from penstock import fn, pipeline_def, types

RNG = np.random.default_rng(3)
# 21 MB as uint8, of sizes that leave their outputs at all distances from a cache line. Dense batches are packed.
RAGGED = [RNG.integers(0, 256, (500 + k, 701 + 3 * k, 3), "u1") for k in range(18)]
DENSE = [RNG.integers(0, 256, (501, 701, 3), "u1") for _ in range(18)]
SMALL = 4  # samples whose outputs are not large

CASES = {
    "copy": (lambda x: fn.copy(x), lambda x: x),
    "brightness": (lambda x: fn.brightness(x, brightness=0.5, dtype=types.FLOAT), lambda x: x.astype("f4") * 0.5),
    "cast": (lambda x: fn.cast(x, dtype=types.FLOAT), lambda x: x.astype("f4")),
    "flip": (lambda x: fn.flip(x), lambda x: x[:, ::-1]),
    "flip float": (lambda x: fn.flip(fn.cast(x, dtype=types.FLOAT)), lambda x: x[:, ::-1].astype("f4")),
    "flip int16": (lambda x: fn.flip(fn.cast(x, dtype=types.INT16)), lambda x: x[:, ::-1].astype("i2")),
    "vertical flip": (lambda x: fn.flip(x, horizontal=0, vertical=1), lambda x: x[::-1]),
    "arithmetic": (lambda x: x * 0.5 - np.float32(3), lambda x: x.astype("f4") * 0.5 - 3),
    "arithmetic by channel": (lambda x: x + types.Constant(np.int16([1, 2, 3])), lambda x: x + np.int16([1, 2, 3])),
    "comparison": (lambda x: x > 100, lambda x: x > 100),
}


@pytest.mark.parametrize("samples", [RAGGED, DENSE, DENSE[:SMALL]], ids=["ragged", "dense", "small"])
@pytest.mark.parametrize("name", CASES)
def test_large_outputs(name, samples):
    make, reference = CASES[name]

    @pipeline_def(batch_size=len(samples), num_threads=2)
    def pipe():
        return make(fn.external_source(lambda: samples, batch=True, layout="HWC"))

    out = pipe().run()[0]
    for i, x in enumerate(samples):
        np.testing.assert_array_equal(np.asarray(out.at(i)), reference(x))


def test_a_borrowed_output_is_copied():
    """Memory that is returned again in the next iteration must be copied before it becomes an output."""

    @pipeline_def(batch_size=len(RAGGED), num_threads=2)
    def pipe():
        return fn.reshape(fn.external_source(name="x", layout="HWC", no_copy=True, repeat_last=True), shape=[-1])

    p = pipe()
    p.build()
    p.feed_input("x", RAGGED)
    out = p.run()[0]
    for i, x in enumerate(RAGGED):
        got = np.asarray(out.at(i))
        np.testing.assert_array_equal(got, x.ravel())
        assert not np.shares_memory(got, x)
