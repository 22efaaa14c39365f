# SPDX-License-Identifier: Apache-2.0
"""Gaussian blur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image
from torch.nn.functional import conv2d
from torch.nn.functional import pad as _pad

from . import _bytes
from ._annotations import with_annotations
from .convert import pil_to_tensor, to_pil_image
from .geometry import check_picture


def _weights(size: int, sigma: float, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """torchvision's: the places are sqrt(2) apart from a Gaussian's, so that exp(-(x / sigma)^2) is one."""
    end = (size - 1) / (2 * math.sqrt(2))
    places = torch.linspace(-end, end, steps=size, dtype=dtype, device=device)
    return torch.softmax(-(places / sigma).pow(2), dim=0)


@with_annotations()
def gaussian_blur(picture: Any, kernel_size: int | Sequence[int], sigma: Any = None) -> Any:
    """Blurs with a Gaussian. `kernel_size` and `sigma` are numbers, or (x, y); the border is mirrored."""
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2 or any(k < 1 or k % 2 == 0 for k in sizes):
        raise ValueError(f"kernel_size takes odd positive numbers; got {kernel_size}")
    if sigma is None:
        sigma = [0.15 * k + 0.35 for k in sizes]
    values = [float(s) for s in (sigma if isinstance(sigma, (list, tuple)) else [sigma])]
    values = values * 2 if len(values) == 1 else values
    if len(values) != 2 or min(values) <= 0:
        raise ValueError(f"sigma takes positive numbers; got {sigma}")
    if isinstance(picture, Image.Image):
        return to_pil_image(gaussian_blur(pil_to_tensor(picture), sizes, values), picture.mode)
    check_picture(picture, "gaussian_blur")
    if picture.numel() == 0:
        return picture
    dtype = picture.dtype if picture.is_floating_point() else torch.float32
    across, down = (_weights(k, s, dtype, picture.device) for k, s in zip(sizes, values))
    if _bytes.can_blur(picture, (sizes[0], sizes[1])):
        return _bytes.blurred(picture, across, down)
    x = picture.reshape(-1, *picture.shape[-3:]).to(dtype)
    channels = x.shape[1]
    kernel = (down[:, None] * across).expand(channels, 1, sizes[1], sizes[0])
    x = _pad(x, [sizes[0] // 2, sizes[0] // 2, sizes[1] // 2, sizes[1] // 2], mode="reflect")
    x = conv2d(x, kernel, groups=channels).reshape(picture.shape)
    return x if picture.is_floating_point() else x.round_().to(picture.dtype)
