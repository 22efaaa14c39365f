# SPDX-License-Identifier: Apache-2.0
"""Pads images."""

from __future__ import annotations

from typing import Any, Literal

from .._checks import is_sequence, padding_mode_of
from ..pad import BY_MODE, fill_for
from ._call import call, device_of


def pad(
    inpt: Any,
    padding: list[int],
    fill: int | float = 0,
    padding_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
    device: Any = "cpu",
) -> Any:
    """Pads all sides, as `Pad` does. Accepts any type.

    Parameters
    ----------
    inpt
        A Pillow image or a tensor (..., C, H, W).
    padding
        Number of pixels: one number, (left and right, top and bottom), or (left, top, right, bottom); not negative.
    fill
        With `padding_mode` "constant": the value, or one per channel.
    padding_mode
        "constant", "edge", "reflect" or "symmetric".
    device
        "cpu", "gpu" or a `torch.device`.

    >>> import torch
    >>> pad(torch.tensor([[[1, 2]]]), [1, 0], padding_mode="edge")
    tensor([[[1, 1, 2, 2]]])
    """
    padding_mode_of(padding_mode)
    form = "tensor" if hasattr(inpt, "dtype") else "image"
    fill = fill_for(form, fill)
    return call(
        BY_MODE[padding_mode](padding, tuple(fill) if is_sequence(fill) else fill, device_of(device)),  # type: ignore[arg-type]
        inpt,
    )
