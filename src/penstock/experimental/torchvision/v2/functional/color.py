# SPDX-License-Identifier: Apache-2.0
"""Converts images to greyscale."""

from __future__ import annotations

from typing import Any

from ..color import Grayscale
from ._call import call, device_of


def to_grayscale(inpt: Any, num_output_channels: int = 1, device: Any = "cpu") -> Any:
    """Converts to greyscale, as `Grayscale` does.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W), with 1, 3 or 4 channels.
    num_output_channels
        1, or 3 for three equal channels.
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> to_grayscale(torch.tensor([[[0]], [[255]], [[0]]], dtype=torch.uint8))
    tensor([[[150]]], dtype=torch.uint8)
    """
    return call(Grayscale(num_output_channels, device_of(device)), inpt)


def rgb_to_grayscale(inpt: Any, num_output_channels: int = 1, device: Any = "cpu") -> Any:
    """Same as `to_grayscale`.

    >>> import torch
    >>> rgb_to_grayscale(torch.zeros(3, 4, 6), num_output_channels=3).shape
    torch.Size([3, 4, 6])
    """
    return to_grayscale(inpt, num_output_channels, device)
