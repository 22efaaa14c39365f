# SPDX-License-Identifier: Apache-2.0
"""Resizes images."""

from __future__ import annotations

from typing import Any

from .._enums import InterpolationMode
from ..resize import Resize
from ._call import call, device_of


def resize(
    inpt: Any,
    size: list[int],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
    device: Any = "cpu",
) -> Any:
    """Resizes, as `Resize` does.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W), of uint8, int16, uint16 or float32.
    size
        (height, width), a number for the shorter edge, or None with a `max_size`.
    interpolation, max_size, antialias
        As in `Resize`.
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> resize(torch.zeros(3, 8, 12), [4]).shape
    torch.Size([3, 4, 6])
    """
    return call(Resize(size, interpolation, max_size, antialias, device_of(device)), inpt)
