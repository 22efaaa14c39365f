# SPDX-License-Identifier: Apache-2.0
"""Sizes of images."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image


def get_dimensions(inpt: Any) -> list[int]:
    """Returns [channels, height, width] of a Pillow image, or a tensor (..., C, H, W) or (H, W).

    >>> import torch
    >>> get_dimensions(torch.zeros(2, 3, 4, 6)), get_dimensions(torch.zeros(4, 6))
    ([3, 4, 6], [1, 4, 6])
    """
    if isinstance(inpt, Image.Image):
        return [len(inpt.getbands()), inpt.height, inpt.width]
    if not isinstance(inpt, torch.Tensor):
        raise TypeError(f"a picture has to be a PIL.Image.Image or a torch.Tensor, got {type(inpt).__name__}")
    if inpt.ndim < 2:
        raise TypeError(f"a tensor of pictures has at least two axes, (H, W); got one of shape {tuple(inpt.shape)}")
    return [1 if inpt.ndim == 2 else inpt.shape[-3], *inpt.shape[-2:]]


def get_size(inpt: Any) -> list[int]:
    """Returns [height, width] of an image.

    >>> from PIL import Image
    >>> get_size(Image.new("RGB", (6, 4)))
    [4, 6]
    """
    return get_dimensions(inpt)[1:]


def get_image_size(inpt: Any) -> list[int]:
    """Returns [width, height] of an image, the reverse of `get_size`.

    >>> from PIL import Image
    >>> get_image_size(Image.new("RGB", (6, 4)))
    [6, 4]
    """
    return get_size(inpt)[::-1]
