# SPDX-License-Identifier: Apache-2.0
"""Converts Pillow images to tensors, and tensors to images."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image

from .._interchange import array_image


def pil_to_tensor(inpt: Image.Image) -> torch.Tensor:
    """Converts an image of any mode to a tensor CHW without scaling. Mode "1" gives 0 and 255.

    >>> pil_to_tensor(Image.new("RGB", (6, 4), (1, 2, 3)))[:, 0, 0]
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    if not isinstance(inpt, Image.Image):
        raise TypeError(f"pil_to_tensor takes a PIL.Image.Image, got {type(inpt).__name__}")
    array = np.array(inpt)
    return _chw(array.astype("u1") * np.uint8(255) if array.dtype == bool else array)


def to_tensor(inpt: Image.Image | np.ndarray) -> torch.Tensor:
    """Converts an image or an array HWC or HW to a tensor CHW: uint8 to float32 in [0.0, 1.0]; other types are not
    changed.

    >>> to_tensor(Image.new("L", (6, 4), 51)).unique()
    tensor([0.2000])
    """
    if isinstance(inpt, Image.Image):
        tensor = pil_to_tensor(inpt)
    elif isinstance(inpt, np.ndarray):
        if inpt.ndim not in (2, 3):
            raise ValueError(f"to_tensor takes arrays of two or three axes, HW or HWC; got shape {inpt.shape}")
        tensor = _chw(inpt)
    else:
        raise TypeError(f"to_tensor takes a PIL.Image.Image or a NumPy array, got {type(inpt).__name__}")
    return tensor.to(torch.float32).div_(255) if tensor.dtype == torch.uint8 else tensor


def _chw(array: np.ndarray) -> torch.Tensor:
    if array.ndim == 2:
        array = array[:, :, None]
    return torch.from_numpy(np.array(array.transpose(2, 0, 1), order="C"))


def to_pil_image(inpt: torch.Tensor, mode: str | None = None, input_layout: str = "CHW") -> Image.Image:
    """Converts a tensor of uint8, or of float32 in [0.0, 1.0] (multiplied by 255, clamped, truncated), to an image.

    Parameters
    ----------
    inpt
        A tensor with three axes, in the order of `input_layout`.
    mode
        The mode of the image. By default L, RGB or RGBA for 1, 3 or 4 channels. Also accepted: LA for 2; HSV, YCbCr,
        LAB for 3; CMYK, RGBX for 4.
    input_layout
        "CHW" or "HWC".

    >>> to_pil_image(torch.zeros(3, 4, 6)).getpixel((0, 0))
    (0, 0, 0)
    """
    if not isinstance(inpt, torch.Tensor):
        raise TypeError(f"to_pil_image takes a torch.Tensor, got {type(inpt).__name__}")
    if input_layout not in ("CHW", "HWC"):
        raise ValueError(f"input_layout takes 'CHW' or 'HWC', got {input_layout!r}")
    if inpt.ndim != 3:
        raise ValueError(f"to_pil_image takes a tensor of three axes, {input_layout}; got shape {tuple(inpt.shape)}")
    tensor = inpt.detach().cpu()
    return array_image((tensor if input_layout == "HWC" else tensor.movedim(0, -1)).numpy(), mode)
