# SPDX-License-Identifier: Apache-2.0
"""Colors of tensors of bytes by native code, which rounds as PyTorch does."""

from __future__ import annotations

from functools import cache

import torch

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


@cache
def _rounds_alike() -> bool:
    """Whether PyTorch multiplies and adds in one step here, as it does on all processors of the last ten years."""
    x = torch.arange(3 * 4096).mul(2654435761).bitwise_right_shift_(7).to(torch.uint8).reshape(3, 64, 64)
    red, green, blue = x
    expected = red.mul(0.2989).add_(green, alpha=0.587).add_(blue, alpha=0.114).floor_().unsqueeze(0)
    mixed = x.mul(1.37).add_(expected, alpha=1.0 - 1.37).clamp_(0, 255).to(torch.uint8)
    return torch.equal(luma(x).float(), expected) and torch.equal(mixed_with_luma(x, 1.37), mixed)
