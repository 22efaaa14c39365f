# SPDX-License-Identifier: Apache-2.0
"""`pad` by repeated and mirrored pixels: torchvision's, for tensors of any type and shape, with sides that crop."""

import pytest

torch = pytest.importorskip("torch")

from penstock.transforms import functional as F  # noqa: E402

SIDES = [0, 1, 2, [1, 2], [0, 3, 2, 1], [-1, 2, 0, -1], [2, -1, -2, 1]]
SHAPES = [(3, 7, 9), (2, 3, 5, 6), (1, 6, 4), (2, 2, 3, 4, 5)]


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.int16, torch.float64])
def test_borders(v2, mode, dtype):
    torch.manual_seed(0)
    for shape in SHAPES:
        x = (torch.rand(shape) * 255).to(dtype)
        for sides in SIDES:
            got, expected = F.pad(x, sides, padding_mode=mode), v2.functional.pad(x, sides, padding_mode=mode)
            assert got.dtype == expected.dtype and torch.equal(got, expected), (shape, sides)


@pytest.mark.parametrize("mode, sides", [("reflect", 4), ("reflect", [0, 7, 0, 0]), ("symmetric", [0, 0, 5, 0])])
def test_too_wide_borders(v2, mode, sides):
    x = torch.zeros(3, 7, 4, dtype=torch.uint8)
    with pytest.raises((RuntimeError, IndexError)):
        v2.functional.pad(x, sides, padding_mode=mode)
    with pytest.raises(ValueError, match=f"padding_mode='{mode}' pads [47] pixels by at most"):
        F.pad(x, sides, padding_mode=mode)


def test_gradients_pass():
    x = torch.rand(1, 4, 5, dtype=torch.float64, requires_grad=True)
    for mode in ("edge", "reflect", "symmetric"):
        assert torch.autograd.gradcheck(lambda t, mode=mode: F.pad(t, [1, 2, 2, 1], padding_mode=mode), x)
