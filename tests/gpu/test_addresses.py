# SPDX-License-Identifier: Apache-2.0
"""Sums on the GPU depend only on the sample: not on its address, nor on neighbouring samples."""

import numpy as np
import pytest

from penstock import fn, pipeline_def

MEAN = np.float32([[[100.1, 99.9, 102.3]]])
SUMS = {
    "sum": lambda x: fn.reductions.sum(x, axes=[0, 1]),
    "mean_square": lambda x: fn.reductions.mean_square(x, axes=[0, 1]),
    "std_dev": lambda x: fn.reductions.std_dev(x, MEAN, axes=[0, 1]),
    "std_dev of all": lambda x: fn.reductions.std_dev(x, 100.3),
    "normalize": lambda x: fn.normalize(x, axes=[0, 1]),
    "normalize of all": lambda x: fn.normalize(x),
    "normalize of rows": lambda x: fn.normalize(x, axes=[1]),
}


def results(name, batch, which):
    """The results of the samples with indices `which`."""

    @pipeline_def(batch_size=len(batch), num_threads=2, device_id=0)
    def pipe():
        return SUMS[name](fn.external_source(source=[batch], device="gpu", layout="HWC"))

    out = pipe().run()[0].as_cpu()
    return {np.asarray(out.at(i)).tobytes() for i in which}


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("name", SUMS)
def test_wherever_a_sample_lies_and_whatever_is_beside_it(name, dtype):
    rng = np.random.default_rng(5)

    def picture(*shape):
        return (rng.random((*shape, 3)) * 250).astype(dtype)

    for shape in [(31, 20), (123, 141), (301, 283)]:
        sample = picture(*shape)
        batch = [x for k in range(12) for x in (picture(1, k + 1), sample)]
        alone = results(name, [sample], [0])
        assert results(name, batch, range(1, len(batch), 2)) == alone
        assert results(name, [picture(400, 500), sample, picture(3, 3)], [1]) == alone
