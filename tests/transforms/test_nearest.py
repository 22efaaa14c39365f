# SPDX-License-Identifier: Apache-2.0
"""`resize` of tensors by the nearest pixel chooses the pixels of torchvision, for any sizes, types and shapes."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from penstock.transforms import functional as F  # noqa: E402

TYPES = [torch.uint8, torch.float32, torch.float64, torch.int16]


@pytest.mark.parametrize("name", ["NEAREST", "NEAREST_EXACT"])
def test_sizes(v2, name):
    rng, mode = np.random.default_rng(0), getattr(v2.InterpolationMode, name)
    for k in range(300):
        height, width, *wanted = rng.integers(1, (40, 700, 700, 90)[k % 4], 4).tolist()
        x = torch.arange(2 * height * width).reshape(2, height, width).to(TYPES[k % len(TYPES)])
        x = x[None, :, None] if k % 3 == 0 else x
        got, expected = F.resize(x, wanted, mode), v2.functional.resize(x, wanted, mode)
        assert got.dtype == expected.dtype and torch.equal(got, expected), (height, width, wanted)


def test_large_sizes(v2):
    x = torch.arange(70_001, dtype=torch.float64).reshape(1, 1, -1)
    for mode in (v2.InterpolationMode.NEAREST, v2.InterpolationMode.NEAREST_EXACT):
        for width in (1, 2, 69_999, 70_000, 70_003, 99_991):
            assert torch.equal(F.resize(x, [1, width], mode), v2.functional.resize(x, [1, width], mode)), width
