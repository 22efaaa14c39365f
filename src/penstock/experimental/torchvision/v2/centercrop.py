# SPDX-License-Identifier: Apache-2.0
"""Crops the centre of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from . import _windows
from ._checks import both, size_of
from ._picture import Picture
from .operator import ArgumentValidateRule, Operator, get_HWC_from_layout_pipeline


class _Size(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, size: Any, **kwargs: Any) -> None:
        size_of(size)


class CenterCrop(Operator):
    """Crops the centre of images; smaller images are padded with 0 on both sides.

    If the centre is between two pixels, the window begins at an even one; with padding, the odd pixel is added at the
    left and at the top. Accepts any type.

    Parameters
    ----------
    size
        (height, width), or one number for both; positive integers.
    device
        "cpu" or "gpu".

    Raises
    ------
    TypeError, ValueError
        For other sizes.

    >>> import torch
    >>> CenterCrop((2, 3))(torch.arange(30).reshape(1, 5, 6).to(torch.uint8))
    tensor([[[14, 15, 16],
             [20, 21, 22]]], dtype=torch.uint8)
    """

    arg_rules = (_Size,)
    preprocess_data = get_HWC_from_layout_pipeline

    @classmethod
    def adjust_size(cls, size: int | Sequence[int]) -> tuple[int, int]:
        """Height and width.

        >>> CenterCrop.adjust_size(5), CenterCrop.adjust_size([5, 6])
        ((5, 5), (5, 6))
        """
        return both(size_of(size))

    def __init__(self, size: int | Sequence[int], device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(device, size=size)
        self.size = self.adjust_size(size)

    def _apply(self, picture: Picture) -> Picture:
        return picture.made(_windows.center_crop(picture.data, self.size))
