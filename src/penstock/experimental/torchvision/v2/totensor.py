# SPDX-License-Identifier: Apache-2.0
"""Sets the result of a `Compose`: PyTorch tensors or PIL images."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ._picture import Picture
from .operator import Operator


class _Output(Operator):
    """Base of the transforms that set the kind of the result. If a list has several, the last one applies."""

    form: ClassVar[str]

    def __init__(self, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(device)

    def _invoke(self, picture: Picture) -> Picture:
        return picture

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPureTensor(_Output):
    """Makes a `Compose` return a `torch.Tensor` CHW (NCHW for a batch), of the images' type at that point.

    Parameters
    ----------
    device
        "cpu" or "gpu"; has no effect, as nothing is computed.

    >>> from PIL import Image
    >>> ToPureTensor()(Image.new("RGB", (6, 4))).shape
    torch.Size([3, 4, 6])
    """

    form = "tensor"


class PILToTensor(_Output):
    """Makes a `Compose` return a `torch.Tensor` CHW. Values stay in [0, 255]; nothing is scaled.

    Parameters
    ----------
    device
        "cpu" or "gpu"; has no effect, as nothing is computed.

    >>> from PIL import Image
    >>> PILToTensor()(Image.new("L", (6, 4), 200)).unique()
    tensor([200], dtype=torch.uint8)
    """

    form = "tensor"


class ToPILImage(_Output):
    """Makes a `Compose` return a `PIL.Image.Image`, of mode L, RGB or RGBA for 1, 3 or 4 channels; a list of them for a
    batch. Floats must be in [0.0, 1.0]: they are multiplied by 255, clamped, and truncated.

    Parameters
    ----------
    device
        "cpu" or "gpu"; has no effect, as nothing is computed.

    >>> import torch
    >>> ToPILImage()(torch.zeros(3, 4, 6)).size
    (6, 4)
    """

    form = "image"


def output_form(op_list: Any) -> str | None:
    """The form set by the last `_Output` in a list; None if there is none."""
    return next((op.form for op in reversed(list(op_list)) if isinstance(op, _Output)), None)
