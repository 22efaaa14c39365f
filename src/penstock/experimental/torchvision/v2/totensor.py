# SPDX-License-Identifier: Apache-2.0
"""What a `Compose` gives: PyTorch tensors or PIL images."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ._picture import Picture
from .operator import Operator


class _Output(Operator):
    """Base of those that say what comes out at last; wherever in the list they stand, the last one holds."""

    form: ClassVar[str]

    def __init__(self, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(device)

    def _invoke(self, picture: Picture) -> Picture:
        return picture

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPureTensor(_Output):
    """Has a `Compose` give a `torch.Tensor` CHW (NCHW for a batch), of the type that the pictures have by then.

    Parameters
    ----------
    device
        "cpu" or "gpu"; of no meaning, as nothing is computed.

    >>> from PIL import Image
    >>> ToPureTensor()(Image.new("RGB", (6, 4))).shape
    torch.Size([3, 4, 6])
    """

    form = "tensor"


class PILToTensor(_Output):
    """Has a `Compose` give a `torch.Tensor` CHW. The values stay in [0, 255]; nothing is scaled.

    Parameters
    ----------
    device
        "cpu" or "gpu"; of no meaning, as nothing is computed.

    >>> from PIL import Image
    >>> PILToTensor()(Image.new("L", (6, 4), 200)).unique()
    tensor([200], dtype=torch.uint8)
    """

    form = "tensor"


class ToPILImage(_Output):
    """Has a `Compose` give a `PIL.Image.Image`: of mode L, RGB or RGBA for 1, 3 or 4 channels; a list of them for a
    batch. Floats are taken for values in [0.0, 1.0]: they are multiplied by 255, clamped, and their fractions cut.

    Parameters
    ----------
    device
        "cpu" or "gpu"; of no meaning, as nothing is computed.

    >>> import torch
    >>> ToPILImage()(torch.zeros(3, 4, 6)).size
    (6, 4)
    """

    form = "image"


def output_form(op_list: Any) -> str | None:
    """What the last of them in a list says; None if there is none."""
    return next((op.form for op in reversed(list(op_list)) if isinstance(op, _Output)), None)
