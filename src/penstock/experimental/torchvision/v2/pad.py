# SPDX-License-Identifier: Apache-2.0
"""Pads images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from . import _windows
from ._checks import fill_of, padding_mode_of, padding_of
from ._picture import Picture
from .operator import ArgumentValidateRule, Operator, get_HWC_from_layout_pipeline


class _PaddingAndFill(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, padding: Any, fill: Any, **kwargs: Any) -> None:
        padding_of(padding)
        for value in fill.values() if isinstance(fill, dict) else (fill,):
            fill_of(value)


class _PadBase(Operator):
    arg_rules = (_PaddingAndFill,)
    preprocess_data = get_HWC_from_layout_pipeline
    border_type: ClassVar[str] = "pad"

    @staticmethod
    def get_padding(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
        """Left, top, right, bottom."""
        return padding_of(padding)

    def __init__(self, padding: int | Sequence[int], fill: Any = 0, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(device, padding=padding, fill=fill)
        self.padding, self.fill = self.get_padding(padding), fill

    def _apply(self, picture: Picture) -> Picture:
        data = _windows.pad(picture.data, self.padding, self.border_type, fill_of(fill_for(picture.form, self.fill)))
        return picture.made(data)


class PadConstant(_PadBase):
    """`Pad` with `padding_mode` "constant".

    >>> import torch
    >>> PadConstant(1, fill=7)(torch.tensor([[[1, 2]]]))
    tensor([[[7, 7, 7, 7],
             [7, 1, 2, 7],
             [7, 7, 7, 7]]])
    """

    border_type = "pad"


class PadEdge(_PadBase):
    """`Pad` with `padding_mode` "edge"; `fill` has no effect.

    >>> import torch
    >>> PadEdge((2, 0))(torch.tensor([[[1, 2, 3]]]))
    tensor([[[1, 1, 1, 2, 3, 3, 3]]])
    """

    border_type = "clamp"


class PadSymmetric(_PadBase):
    """`Pad` with `padding_mode` "symmetric"; `fill` has no effect.

    >>> import torch
    >>> PadSymmetric((2, 0))(torch.tensor([[[1, 2, 3]]]))
    tensor([[[2, 1, 1, 2, 3, 3, 2]]])
    """

    border_type = "reflect_1001"


class PadReflect(_PadBase):
    """`Pad` with `padding_mode` "reflect"; `fill` has no effect.

    >>> import torch
    >>> PadReflect((2, 0))(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1, 2, 3, 2, 1]]])
    """

    border_type = "reflect_101"


BY_MODE: dict[str, type[_PadBase]] = {
    "constant": PadConstant,
    "edge": PadEdge,
    "reflect": PadReflect,
    "symmetric": PadSymmetric,
}


class Pad(Operator):
    """Pads images on all sides. Accepts any type.

    Parameters
    ----------
    padding
        Number of pixels: one number, (left and right, top and bottom), or (left, top, right, bottom); not negative.
    fill
        With `padding_mode` "constant": the value of the padding, or one per channel; None is 0. Clamped to the range of
        the type and truncated. A dictionary has values for `PIL.Image.Image`, `torch.Tensor`, and "others".
    padding_mode
        "constant", "edge" (the outermost pixel), "reflect" (mirrored at it) or "symmetric" (mirrored after it).
    device
        "cpu" or "gpu".

    Raises
    ------
    TypeError, ValueError
        For other arguments.

    >>> import torch
    >>> Pad((1, 0), padding_mode="edge")(torch.tensor([[[1, 2]]]))
    tensor([[[1, 1, 2, 2]]])
    """

    def __init__(
        self,
        padding: int | Sequence[int],
        fill: Any = 0,
        padding_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
        device: Literal["cpu", "gpu"] = "cpu",
    ):
        padding_mode_of(padding_mode)
        super().__init__(device)
        self.padding_mode = padding_mode
        self._pad = BY_MODE[padding_mode](padding, fill, device)

    def _apply(self, picture: Picture) -> Picture:
        return self._pad._apply(picture)


def fill_for(form: str, fill: Any) -> Any:
    """The entry of a dictionary for an "image" or "tensor" as input; 0 if there is none."""
    if not isinstance(fill, dict):
        return fill
    for key, value in fill.items():
        name = key if isinstance(key, str) else getattr(key, "__name__", "")
        if name == {"image": "Image", "tensor": "Tensor"}[form]:
            return value
    return fill.get("others", 0)
