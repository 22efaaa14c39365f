# SPDX-License-Identifier: Apache-2.0
"""Crops the centre of an image."""

from __future__ import annotations

from typing import Any

from ..centercrop import CenterCrop
from ._call import call, device_of


def center_crop(inpt: Any, output_size: int | list[int], device: Any = "cpu") -> Any:
    """Crops the centre, as `CenterCrop` does.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W).
    output_size
        (height, width), or one number for both; positive integers.
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> center_crop(torch.arange(9).reshape(1, 3, 3), 1)
    tensor([[[4]]])
    """
    return call(CenterCrop(output_size, device_of(device)), inpt)
