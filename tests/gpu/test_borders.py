# SPDX-License-Identifier: Apache-2.0
"""Operators that read outside images, fused into one launch: each uses its own border."""

import numpy as np
import pytest

from penstock import fn, pipeline_def

IMAGES = [np.random.default_rng(i).integers(0, 256, s, np.uint8) for i, s in enumerate(((6, 9, 3), (12, 7, 3)))]
FIRST = {
    "rotate": lambda x, **on: fn.rotate(x, angle=30.0, **on),
    "warp_affine": lambda x, **on: fn.warp_affine(x, matrix=[1, 0.2, 0, 0.1, 1, 0], fill_value=3.0, **on),
    "sphere": lambda x, **on: fn.sphere(x, **on),
    "water": lambda x, **on: fn.water(x, **on),
    "filter": lambda x, **on: fn.filter(x, np.ones((3, 3), "f4"), dtype=np.uint8, **on),
    "gaussian_blur": lambda x, **on: fn.gaussian_blur(x, sigma=1.0, **on),
}


@pytest.mark.parametrize("name", FIRST)
def test_crop_behind(name):
    def run(device):
        on = {"device": device} if device == "gpu" else {}

        @pipeline_def(batch_size=2, num_threads=2, device_id=0 if on else None)
        def pipe():
            x = fn.external_source(source=lambda: IMAGES, layout="HWC", device=device)
            return fn.crop(FIRST[name](x, **on), crop=[5, 9], out_of_bounds_policy="reflect", **on)

        (out,) = pipe().run()
        return [np.array(out.as_cpu().at(i)).astype(int) for i in range(2)]

    for a, b in zip(run("gpu"), run("cpu")):
        assert np.abs(a - b).max() <= 1
