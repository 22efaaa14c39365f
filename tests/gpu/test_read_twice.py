# SPDX-License-Identifier: Apache-2.0
"""A result within a chain that several operators read: each output is that of the CPU."""

import numpy as np
import pytest
from planned_batches import N, images

from penstock import fn, pipeline_def

READ_TWICE = {
    "brightness": lambda x: (b := fn.brightness(x, brightness=0.7), fn.hue(b, hue=30.0), fn.flip(b))[1:],
    "arithmetic": lambda x: (b := x // 2, fn.contrast(b, contrast=1.5), fn.brightness(b, brightness=0.5))[1:],
    "blur": lambda x: (b := fn.gaussian_blur(x, window_size=3), fn.flip(b), fn.gaussian_blur(b, window_size=5))[1:],
    "gather": lambda x: (b := fn.rotate(x, angle=30.0), fn.flip(b), fn.brightness(b, brightness=0.5))[1:],
    "three": lambda x: (b := fn.flip(x), fn.hue(b, hue=9.0), fn.brightness(b, brightness=2), fn.flip(b, vertical=1))[
        1:
    ],
    "operator and sum": lambda x: (b := fn.brightness(x, brightness=0.7), fn.flip(b) + b)[1:],
    "a view of it": lambda x: (
        b := fn.brightness(x, brightness=0.7),
        fn.flip(b),
        fn.brightness(fn.reinterpret(b, layout="HWC"), brightness=0.5),
    )[1:],
    "two views of it": lambda x: (
        b := fn.brightness(x, brightness=0.7),
        fn.flip(fn.reinterpret(b, layout="HWC")),
        fn.brightness(fn.reinterpret(b, layout="HWC"), brightness=0.5),
    )[1:],
}


@pytest.mark.parametrize("name", READ_TWICE)
def test_as_on_the_cpu(name):
    def outputs(device):
        def define():
            x = fn.external_source(source=[images(k) for k in range(4)], layout="HWC", device=device)
            return READ_TWICE[name](x)

        pipe = pipeline_def(define, batch_size=N, num_threads=2, device_id=0)()
        batches = [[o.as_cpu() if device == "gpu" else o for o in pipe.run()] for _ in range(4)]
        return [[np.array(o.at(i)) for o in batch for i in range(N)] for batch in batches]

    for got, want in zip(outputs("gpu"), outputs("cpu")):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.astype("i4"), b.astype("i4"), atol=1)
