# SPDX-License-Identifier: Apache-2.0
"""The middle of a picture."""

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
    """Cuts out the middle of pictures; those that are smaller are filled up with 0 on both sides.

    Where the middle lies between two pixels, the window begins at an even one; of what is filled up, the odd pixel goes
    to the left and to the top. Takes any type.

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
