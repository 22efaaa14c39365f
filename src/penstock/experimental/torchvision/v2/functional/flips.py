# SPDX-License-Identifier: Apache-2.0
"""Flips images."""

from __future__ import annotations

from typing import Any

from ..flips import RandomHorizontalFlip, RandomVerticalFlip
from ._call import call, device_of


def horizontal_flip(inpt: Any, device: Any = "cpu") -> Any:
    """Flips left and right. Accepts any type.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W).
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> horizontal_flip(torch.tensor([[[1, 2], [3, 4]]]))
    tensor([[[2, 1],
             [4, 3]]])
    """
    return call(RandomHorizontalFlip(1.0, device_of(device)), inpt)


def vertical_flip(inpt: Any, device: Any = "cpu") -> Any:
    """Flips top and bottom. Accepts any type.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W).
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> vertical_flip(torch.tensor([[[1, 2], [3, 4]]]))
    tensor([[[3, 4],
             [1, 2]]])
    """
    return call(RandomVerticalFlip(1.0, device_of(device)), inpt)
