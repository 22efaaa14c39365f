# SPDX-License-Identifier: Apache-2.0
"""Types of elements, and images as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from PIL import Image

from .._picture import Picture, of_image, of_tensor
from ._annotations import with_annotations


def pil_to_tensor(image: Any) -> torch.Tensor:
    """Converts an image to a tensor (C, H, W) with the same values."""
    if isinstance(image, Picture):
        return image.tensor()
    if not isinstance(image, Image.Image):
        raise TypeError(f"pil_to_tensor takes an image of Pillow; got {type(image).__name__}")
    view = of_image(image)
    if view is not None:
        return view.tensor()
    array = np.array(image)
    return torch.from_numpy(array[None] if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1)))


def to_image(x: Any) -> torch.Tensor:
    """Converts an image, an array (H, W) or (H, W, C), or a tensor to a tensor (C, H, W)."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(np.atleast_3d(x).transpose(2, 0, 1)))
    if isinstance(x, torch.Tensor):
        return x if x.ndim > 2 else x[None]
    return pil_to_tensor(x)


def to_tensor(x: Any) -> torch.Tensor:
    """Same as `to_image`, with bytes divided by 255, as float32."""
    if isinstance(x, np.ndarray):
        if x.ndim not in (2, 3):
            raise ValueError(f"an array of a picture has 2 or 3 axes; got {x.ndim}")
    elif not isinstance(x, (Image.Image, Picture)):
        raise TypeError(f"to_tensor takes an image of Pillow or an array; got {type(x).__name__}")
    view = x if isinstance(x, Picture) else of_image(x) if isinstance(x, Image.Image) else None
    if view is not None:
        return scaled_and_normalized(view, divides=True)
    if isinstance(x, Image.Image) and x.mode == "1":
        return 255 * to_image(x.convert("L")).float() / 255 / 255
    made = to_image(x)
    made = made.to(torch.int16) if isinstance(x, Image.Image) and x.mode == "I;16" else made
    return made.to(torch.get_default_dtype()).div(255) if made.dtype is torch.uint8 else made


# What an array becomes: the modes of Pillow that it may have, by its number of channels, the usual one first.
_MODES = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
_OF_ONE_CHANNEL = {"uint8": "L", "int16": "I;16", "int32": "I", "float32": "F"}


def to_pil_image(x: Any, mode: str | None = None) -> Image.Image:
    """Converts a tensor (C, H, W), or an array (H, W, C), to an image; floats are multiplied by 255 unless the mode is
    "F"."""
    if isinstance(x, torch.Tensor):
        x = (x.permute(1, 2, 0) if x.ndim == 3 else x).numpy(force=True)
    if not isinstance(x, np.ndarray):
        raise TypeError(f"to_pil_image takes a tensor or an array; got {type(x).__name__}")
    if x.ndim not in (2, 3):
        raise ValueError(f"an image has two or three axes; got {x.ndim}")
    x = x if x.ndim == 3 else x[:, :, None]
    if x.shape[2] > 4:
        raise ValueError(f"an image has 1 to 4 channels; got {x.shape[2]}")
    x = (x * 255).astype(np.uint8) if x.dtype.kind == "f" and mode != "F" else x
    if x.shape[2] == 1:
        known = _OF_ONE_CHANNEL.get(x.dtype.name)
        if known is None or mode not in (None, known):
            accepted = ", ".join(f"{m!r} of {t}" for t, m in _OF_ONE_CHANNEL.items())
            raise ValueError(f"mode={mode!r} does not fit one channel of {x.dtype}; accepted: {accepted}")
        return Image.fromarray(np.ascontiguousarray(x[:, :, 0]).view(np.uint16 if known == "I;16" else x.dtype))
    modes = _MODES.get(x.shape[2], _MODES[3])
    if mode not in (None, *modes) or x.dtype != np.uint8:
        raise ValueError(
            f"mode={mode!r} does not fit {x.shape[2]} channels of {x.dtype}; accepted for bytes: {', '.join(modes)}"
        )
    return Image.frombytes(mode or modes[0], (x.shape[1], x.shape[0]), np.ascontiguousarray(x).tobytes())


to_image_pil = to_pil_image


def largest(dtype: torch.dtype) -> int:
    """The value that stands for white."""
    return 1 if dtype.is_floating_point or dtype is torch.bool else torch.iinfo(dtype).max


@with_annotations()
def to_dtype(x: Any, dtype: torch.dtype = torch.float32, scale: bool = False) -> Any:
    """Converts the type; with `scale`, values are scaled so that white stays white: floats are in [0, 1].

    >>> to_dtype(torch.tensor([0, 255], dtype=torch.uint8), torch.float32, scale=True)
    tensor([0., 1.])
    """
    if isinstance(x, Picture):
        x = x.given_back()
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"to_dtype takes a tensor; got {type(x).__name__}. Put ToImage before it")
    if x.dtype == dtype:
        return x
    if not scale:
        return x.to(dtype)
    before, after = x.dtype.is_floating_point, dtype.is_floating_point
    if before and after:
        return x.to(dtype)
    if before:
        if (x.dtype, dtype) in (
            (torch.float32, torch.int32),
            (torch.float32, torch.int64),
            (torch.float64, torch.int64),
        ):
            raise RuntimeError(f"{x.dtype} has not enough digits for {dtype}")
        return x.mul(largest(dtype) + 1.0 - 1e-3).to(dtype)  # each integer gets an interval of one length
    if after:
        view = of_tensor(x) if dtype is torch.float32 else None
        if view is not None:
            return scaled_and_normalized(view)
        return x.to(dtype).mul_(1.0 / largest(x.dtype))
    if torch.bool in (x.dtype, dtype):
        raise TypeError(f"scale=True is for integers and floats, not from {x.dtype} to {dtype}; leave it out")
    shift = _value_bits(x.dtype) - _value_bits(dtype)
    if torch.uint16 in (x.dtype, dtype):  # which PyTorch does not shift
        return (x / 2**shift).to(dtype) if shift > 0 else x.to(dtype) * 2**-shift
    return x.bitwise_right_shift(shift).to(dtype) if shift > 0 else x.to(dtype).bitwise_left_shift_(-shift)


def _value_bits(dtype: torch.dtype) -> int:
    return largest(dtype).bit_length()


def convert_image_dtype(x: Any, dtype: torch.dtype = torch.float32) -> Any:
    """Converts the type; values are scaled so that white stays white."""
    return to_dtype(x, dtype, scale=True)


@with_annotations()
def normalize(x: Any, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> torch.Tensor:
    """Computes (x - mean) / std for each channel of a float tensor."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"normalize takes a tensor; got {type(x).__name__}. Put ToImage and ToDtype before it")
    if not x.is_floating_point():
        raise TypeError(f"normalize takes floats; got {x.dtype}. Put ToDtype(torch.float32, scale=True) before it")
    if x.ndim < 3:
        raise ValueError(f"normalize takes tensors (..., C, H, W); got the shape {tuple(x.shape)}")
    m, s = (torch.as_tensor(v, dtype=x.dtype, device=x.device) for v in (mean, std))
    if (s == 0).any():
        raise ValueError(f"std={list(std)} has a zero, which can't be divided by")
    m, s = (v.view(-1, 1, 1) if v.ndim == 1 else v for v in (m, s))
    return (x.sub_(m) if inplace else x.sub(m)).div_(s)


@lru_cache(64)
def _constants(mean: tuple[float, ...], deviation: tuple[float, ...], channels: int) -> tuple[np.ndarray, np.ndarray]:
    def column(values: tuple[float, ...]) -> np.ndarray:
        return np.ascontiguousarray(np.broadcast_to(np.array(values, "f4"), channels))

    return column(mean), column(deviation)


def scaled_and_normalized(
    x: Picture, mean: tuple[float, ...] = (0.0,), std: tuple[float, ...] = (1.0,), divides: bool = False
) -> torch.Tensor:
    """Of bytes: `to_dtype(scale=True)`, or if it `divides` `to_tensor`, and `normalize` at once, rounded as there."""
    scale = (1.0, 255.0) if divides else (1 / 255, 1.0)
    return x.floats(*scale, *_constants(mean, std, x.pixels.shape[-3]))
