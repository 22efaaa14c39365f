# SPDX-License-Identifier: Apache-2.0
"""Colors and blur of tensors of bytes by native code, which rounds as PyTorch does."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch.nn.functional import conv2d

from ...core.kernels import library


def is_fast(x: torch.Tensor) -> bool:
    """Whether the functions below take a tensor (..., C, H, W)."""
    return x.dtype is torch.uint8 and x.device.type == "cpu" and x.ndim >= 3 and x.numel() > 0 and _rounds_alike()


def _extents(x: torch.Tensor, planes: int) -> tuple[int, int]:
    """How many groups of `planes` planes there are, and how many elements each plane has."""
    size = x.shape[-1] * x.shape[-2]
    return x.numel() // (size * planes), size


def luma(x: torch.Tensor) -> torch.Tensor:
    """(..., 1, H, W), rounded down."""
    x = x.contiguous()
    out = torch.empty((*x.shape[:-3], 1, *x.shape[-2:]), dtype=torch.uint8)
    library().picture_luma(x.data_ptr(), *_extents(x, 3), out.data_ptr())
    return out


def mixed_with_luma(x: torch.Tensor, share: float) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    library().picture_saturation(x.data_ptr(), *_extents(x, 3), share, 1.0 - share, out.data_ptr())
    return out


def turned_hue(x: torch.Tensor, share: float) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    library().picture_hue(x.data_ptr(), *_extents(x, 3), share, out.data_ptr())
    return out


def counts(x: torch.Tensor) -> torch.Tensor:
    """How often each value is there: (planes, 256) int64."""
    x = x.contiguous()
    n, size = _extents(x, 1)
    out = torch.empty(n, 256, dtype=torch.int64)
    library().plane_counts(x.data_ptr(), n, size, out.data_ptr())
    return out


def replaced(x: torch.Tensor, tables: torch.Tensor) -> torch.Tensor:
    """Values by tables (n, 256) of bytes, each for as many planes as there are for it."""
    x, tables = x.contiguous(), tables.contiguous()
    n, size = _extents(x, 1)
    out = torch.empty_like(x)
    library().plane_tables(x.data_ptr(), n, size, tables.data_ptr(), n // len(tables), out.data_ptr())
    return out


def can_blur(x: torch.Tensor, size: tuple[int, int]) -> bool:
    """Whether `blurred` takes a tensor (..., C, H, W), for a window (width, height)."""
    if x.device.type != "cpu" or x.requires_grad or x.numel() == 0:
        return False
    if x.shape[-1] <= size[0] // 2 or x.shape[-2] <= size[1] // 2:
        return False
    return x.dtype is torch.float32 or x.dtype is torch.uint8 and _adds_in_order(*size, x.shape[-3])


def blurred(x: torch.Tensor, across: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """By float32 weights along rows and columns, mirrored at the border. Bytes are rounded to the nearest."""
    x = x.contiguous()
    out = torch.empty_like(x)
    height, width = x.shape[-2:]
    weights = (across.data_ptr(), len(across), down.data_ptr(), len(down))
    is_bytes = x.dtype is torch.uint8
    if library().picture_blur(
        x.data_ptr(), x.numel() // (height * width), height, width, *weights, is_bytes, out.data_ptr()
    ):
        raise MemoryError(f"blurring a picture of {height} x {width}")
    return out


def can_sharpen(x: torch.Tensor) -> bool:
    return is_fast(x) and _adds_in_order(3, 3, x.shape[-3])


def mixed_with_smooth(x: torch.Tensor, middle: float, around: float, rest: float) -> torch.Tensor:
    """By `rest` with what weights of 3 x 3 make of it, `middle` and those `around`."""
    x = x.contiguous()
    out = torch.empty_like(x)
    height, width = x.shape[-2:]
    numbers = (x.numel() // (height * width), height, width, middle, around, rest)
    library().picture_sharpness(x.data_ptr(), *numbers, out.data_ptr())
    return out


def at_places(x: torch.Tensor, grid: torch.Tensor, fill: torch.Tensor) -> torch.Tensor:
    """(..., C, h, w): the nearest pixels at the places of a grid (1, h, w, 2), or where these lie outside `fill`: one
    value, or one for each channel."""
    x, grid = x.contiguous(), grid.contiguous()
    channels, height, width = x.shape[-3:]
    out = torch.empty((*x.shape[:-2], *grid.shape[1:3]), dtype=torch.uint8)
    fill = fill.expand(channels).contiguous()
    size = grid.shape[1] * grid.shape[2]
    planes = (x.data_ptr(), x.numel() // (channels * height * width), channels, height, width)
    library().picture_places(*planes, grid.data_ptr(), size, fill.data_ptr(), out.data_ptr())
    return out


@cache
def _adds_in_order(width: int, height: int, channels: int) -> bool:
    """Whether PyTorch's convolution adds up the products of a window row after row, each in one step, as
    kernels/filter/picture_blur.cpp does where it matters. It does on x86-64 with AVX2, but for single channels."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (channels, height + 20, width + 40)).astype("f4")
    weights = rng.uniform(0.5, 1, (height, width)).astype("f4")
    sums = np.zeros((channels, 21, 41), "f4")
    for j in range(height):
        for i in range(width):  # exact in float64, and rounded once
            sums = (sums + x[:, j : j + 21, i : i + 41].astype("f8") * float(weights[j, i])).astype("f4")
    kernel = torch.from_numpy(weights).expand(channels, 1, height, width)
    return bool((conv2d(torch.from_numpy(x)[None], kernel, groups=channels)[0].numpy() == sums).all())


@cache
def _rounds_alike() -> bool:
    """Whether PyTorch multiplies and adds in one step here, as it does on all processors of the last ten years."""
    x = torch.arange(3 * 4096).mul(2654435761).bitwise_right_shift_(7).to(torch.uint8).reshape(3, 64, 64)
    red, green, blue = x
    expected = red.mul(0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114).floor_().unsqueeze(0)
    mixed = x.mul(1.37).add_(expected, alpha=1.0 - 1.37).clamp_(0, 255).to(torch.uint8)
    return torch.equal(luma(x).float(), expected) and torch.equal(mixed_with_luma(x, 1.37), mixed)
