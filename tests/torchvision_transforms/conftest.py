# SPDX-License-Identifier: Apache-2.0
"""Images of several types and numbers of channels."""

import numpy as np
import pytest

RNG = np.random.default_rng(11)


@pytest.fixture(params=["uint8", "int16", "float32", "grey", "rgba", "five"])
def array(request) -> np.ndarray:
    x = RNG.integers(0, 256, (23, 34, 3), dtype=np.uint8)
    if request.param == "float32":
        return x.astype("f4") / 255
    if request.param == "int16":
        return x.astype("i2")
    channels = {"grey": 1, "rgba": 4, "five": 5}.get(request.param)
    return x if channels is None else RNG.integers(0, 256, (23, 34, channels), dtype=np.uint8)
