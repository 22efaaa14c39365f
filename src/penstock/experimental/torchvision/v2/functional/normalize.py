# SPDX-License-Identifier: Apache-2.0
"""Normalises images to a mean of 0 and a standard deviation of 1."""

from __future__ import annotations

from typing import Any

import torch

from ..normalize import Normalize
from ._call import call, device_of


def normalize(
    input_data: Any, mean: list[float], std: list[float], inplace: bool = False, device: Any = "cpu"
) -> torch.Tensor:
    """Computes (x - mean) / std for each channel, in float32, as `Normalize` does.

    Parameters
    ----------
    input_data
        A tensor (..., C, H, W).
    mean, std
        One number per channel, or one for all.
    inplace
        Only False is supported.
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> normalize(torch.tensor([[[1.0, 3.0]]]), [1.0], [2.0])
    tensor([[[0., 1.]]])
    """
    if not isinstance(input_data, torch.Tensor):
        raise TypeError(
            f"input_data has to be a torch.Tensor, got {type(input_data).__name__}; pil_to_tensor makes one of an image"
        )
    made: torch.Tensor = call(Normalize(mean, std, inplace, device_of(device)), input_data)
    return made
