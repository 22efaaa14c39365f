# SPDX-License-Identifier: Apache-2.0
"""Crops a window of an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _windows
from .._checks import both, integer, size_of
from .._enums import SUPPORTED, InterpolationMode, check_mode, mode_of
from .._picture import Picture
from .._resized import TYPES, resize
from ..operator import Operator
from ._call import call, device_of


class _Crop(Operator):
    def add(self, picture: Picture, window: Any) -> Picture:
        return picture.made(_windows.crop(picture.data, window))


class _ResizedCrop(Operator):
    def __init__(self, size: tuple[int, int], interpolation: InterpolationMode, antialias: bool, device: Any):
        super().__init__(device)
        self.size, self.interpolation, self.antialias = size, interpolation, antialias

    def add(self, picture: Picture, window: Any) -> Picture:
        picture.check_type("resized_crop", TYPES)
        data = _windows.crop(picture.data, window)
        how = {"interp_type": SUPPORTED[self.interpolation], "antialias": self.antialias}
        return picture.made(resize(data, self.size, None, **how))


def _window(top: Any, left: Any, height: Any, width: Any) -> dict[str, np.ndarray]:
    names = {"top": top, "left": left, "height": height, "width": width}
    values = [integer(v, n) for n, v in names.items()]
    for name, value in zip(("height", "width"), values[2:]):
        if value < 1:
            raise ValueError(f"{name} must be positive, got {value}")
    return {"window": np.array(values)}


def crop(inpt: Any, top: int, left: int, height: int, width: int, device: Any = "cpu") -> Any:
    """Crops a window; pixels outside the image are 0. Accepts any type.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W).
    top, left
        Position of the window; integers, which may be negative.
    height, width
        Size of the window; positive integers.
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> crop(torch.arange(9).reshape(1, 3, 3), 1, 2, 2, 2)
    tensor([[[5, 0],
             [8, 0]]])
    """
    return call(_Crop(device_of(device)), inpt, _window(top, left, height, width))


def resized_crop(
    inpt: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | list[int],
    interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
    antialias: bool = True,
    device: Any = "cpu",
) -> Any:
    """Crops a window, as `crop` does, and resizes it. Pixels outside the window are not used.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W), of uint8, int16, uint16 or float32.
    top, left
        Position of the window; integers, which may be negative.
    height, width
        Size of the window; positive integers.
    size
        (height, width) of the result, or one number for both.
    interpolation, antialias
        As in `Resize`.
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> resized_crop(torch.zeros(3, 8, 8), 1, 1, 6, 6, [2, 3]).shape
    torch.Size([3, 2, 3])
    """
    check_mode(interpolation)
    op = _ResizedCrop(
        both(size_of(size)), mode_of(interpolation), antialias is None or bool(antialias), device_of(device)
    )
    return call(op, inpt, _window(top, left, height, width))
