# SPDX-License-Identifier: Apache-2.0
"""Unchanged samples next to displaced ones."""

import numpy as np
import pytest

from penstock import fn, pipeline_def

IMAGES = [np.random.default_rng(i).integers(0, 256, (9, 8, 3), np.uint8) for i in range(3)]


@pytest.mark.parametrize("masks", [(0, 1, 1), (1, 0, 1)])
@pytest.mark.parametrize("name", ["sphere", "water", "jitter"])
@pytest.mark.parametrize("interp_type", [0, 1])
def test_a_mask_per_sample(name, masks, interp_type):
    seed = {"seed": 3, "nDegree": 4} if name == "jitter" else {}

    def run(device):
        @pipeline_def(batch_size=3, num_threads=2, device_id=0 if device == "gpu" else None)
        def pipe():
            x = fn.external_source(source=lambda: IMAGES, layout="HWC", device=device)
            mask = fn.external_source(source=lambda: [np.int32(m) for m in masks])
            return getattr(fn, name)(x, mask=mask, interp_type=interp_type, fill_value=5, **seed, device=device)

        (out,) = pipe().run()
        return [np.array(out.as_cpu().at(i)).astype(int) for i in range(3)]

    for x, m, a, b in zip(IMAGES, masks, run("gpu"), run("cpu")):
        assert np.abs(a - b).max() <= 1
        assert (b == x).all() != m
