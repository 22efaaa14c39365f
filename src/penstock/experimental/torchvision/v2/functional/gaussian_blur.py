# SPDX-License-Identifier: Apache-2.0
"""Blurs images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..gaussian_blur import GaussianBlur
from ._call import call, device_of


def gaussian_blur(
    inpt: Any,
    kernel_size: int | Sequence[int],
    sigma: int | float | Sequence[float] = (0.1, 2.0),
    device: Any = "cpu",
) -> Any:
    """Blurs with a Gaussian, as `GaussianBlur` does: `sigma` is drawn if it is a range.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W).
    kernel_size
        (height, width) of the window, or one number for both; positive and odd.
    sigma
        Standard deviation in pixels, or (min, max); positive.
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> gaussian_blur(torch.tensor([[[0.0, 9.0, 0.0]]]), (1, 3), 1.0).round(decimals=2)
    tensor([[[4.9300, 4.0700, 4.9300]]])
    """
    return call(GaussianBlur(kernel_size, sigma, device_of(device)), inpt)
