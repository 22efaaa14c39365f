# SPDX-License-Identifier: Apache-2.0
"""Colors of pictures: images of Pillow, or tensors (..., C, H, W) of bytes, or of floats in [0, 1].

Images get what Pillow makes of them. For tensors, each step is rounded as PyTorch's float32 does it, in the order of
torchvision's definition, as its result is cut to a byte: another order gives other bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps

from . import _bytes
from ._annotations import with_annotations
from .convert import largest, pil_to_tensor, to_dtype, to_pil_image
from .geometry import check_picture, get_dimensions

_LUMA = (0.2989, 0.587, 0.114)


def _channels(x: Any, who: str) -> int:
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{who} takes an image of Pillow or a tensor; got {type(x).__name__}")
    if x.ndim < 3 or x.shape[-3] not in (1, 3):
        raise TypeError(f"{who} takes tensors (..., 1 or 3, H, W); got the shape {tuple(x.shape)}")
    return x.shape[-3]


def _factor(value: float, name: str) -> float:
    if value < 0:
        raise ValueError(f"{name} is not negative; got {value}")
    return float(value)


def _finish(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    x = x.clamp_(0, largest(dtype))
    return x if dtype.is_floating_point else x.to(dtype)


def _mixed(x: torch.Tensor, other: torch.Tensor, share: float) -> torch.Tensor:
    """`share` of x, the rest of the other."""
    return _finish(x.mul(share).add_(other, alpha=1.0 - share), x.dtype)


def _values() -> torch.Tensor:
    """What a byte may be: (1, 256), which steps that look at one element only are done for."""
    return torch.arange(256, dtype=torch.uint8)[None]


def _luma(x: torch.Tensor) -> torch.Tensor:
    """float32, or the type of floats."""
    red, green, blue = (x.select(-3, c) for c in range(3))
    return red.mul(_LUMA[0]).add_(green, alpha=_LUMA[1]).add_(blue, alpha=_LUMA[2]).unsqueeze(-3)


def _whole_luma(x: torch.Tensor) -> torch.Tensor:
    if _bytes.is_fast(x):
        return _bytes.luma(x).float()
    return _luma(x) if x.is_floating_point() else _luma(x).floor_()


@with_annotations()
def rgb_to_grayscale(picture: Any, num_output_channels: int = 1) -> Any:
    """Returns the luma of each pixel, in one or three channels."""
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels is 1 or 3; got {num_output_channels}")
    if isinstance(picture, Image.Image):
        luma = picture.convert("L")
        return luma if num_output_channels == 1 else Image.merge("RGB", (luma, luma, luma))
    if _channels(picture, "rgb_to_grayscale") == 1:
        return picture.clone() if num_output_channels == 1 else picture.repeat_interleave(3, -3)
    grey = _bytes.luma(picture) if _bytes.is_fast(picture) else _luma(picture).to(picture.dtype)
    return grey if num_output_channels == 1 else grey.expand(picture.shape)


to_grayscale = rgb_to_grayscale


@with_annotations()
def adjust_brightness(picture: Any, brightness_factor: float) -> Any:
    """Multiplies by a factor: 0 is black, 1 changes nothing."""
    if isinstance(picture, Image.Image):
        return ImageEnhance.Brightness(picture).enhance(brightness_factor)
    _channels(picture, "adjust_brightness")
    factor = _factor(brightness_factor, "brightness_factor")
    if _bytes.is_fast(picture):
        return _bytes.replaced(picture, _finish(_values().mul(factor), torch.uint8))
    return _finish(picture.mul(factor), picture.dtype)


@with_annotations()
def adjust_contrast(picture: Any, contrast_factor: float) -> Any:
    """Scales the distance from the mean of the luma: 0 is grey, 1 changes nothing."""
    if isinstance(picture, Image.Image):
        return ImageEnhance.Contrast(picture).enhance(contrast_factor)
    factor = _factor(contrast_factor, "contrast_factor")
    grey = _whole_luma(picture) if _channels(picture, "adjust_contrast") == 3 else picture
    grey = grey if grey.is_floating_point() else grey.float()
    mean = grey.mean(dim=(-3, -2, -1), keepdim=True)
    if _bytes.is_fast(picture):
        column = mean.reshape(-1, 1)
        return _bytes.replaced(picture, _mixed(_values().expand(len(column), -1), column, factor))
    return _mixed(picture, mean, factor)


@with_annotations()
def adjust_saturation(picture: Any, saturation_factor: float) -> Any:
    """Scales the distance from the luma: 0 is grey, 1 changes nothing."""
    if isinstance(picture, Image.Image):
        return ImageEnhance.Color(picture).enhance(saturation_factor)
    factor = _factor(saturation_factor, "saturation_factor")
    if _channels(picture, "adjust_saturation") == 1:
        return picture
    if _bytes.is_fast(picture):
        return _bytes.mixed_with_luma(picture, factor)
    return _mixed(picture, _whole_luma(picture), factor)


@with_annotations()
def adjust_hue(picture: Any, hue_factor: float) -> Any:
    """Rotates the hue by a share of the colour circle, in [-0.5, 0.5]."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor is in [-0.5, 0.5]; got {hue_factor}")
    if isinstance(picture, Image.Image):
        if picture.mode in ("L", "1", "I", "F"):
            return picture
        hue, saturation, value = picture.convert("HSV").split()
        turn = int(hue_factor * 255) % 256
        hue = Image.fromarray(np.asarray(hue) + np.uint8(turn))
        return Image.merge("HSV", (hue, saturation, value)).convert(picture.mode)
    if _channels(picture, "adjust_hue") == 1 or picture.numel() == 0:
        return picture
    if _bytes.is_fast(picture):
        return _bytes.turned_hue(picture, hue_factor)
    h, s, v = _to_hsv(to_dtype(picture, torch.float32, scale=True))
    rgb = _from_hsv(h.add_(hue_factor).remainder_(1.0), s, v)
    return to_dtype(rgb, picture.dtype, scale=True)


def _to_hsv(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Hue in [0, 1), saturation and value. The hue counts sixths of the circle from the channel that is largest."""
    least, most = torch.aminmax(x, dim=-3)
    span = most - least
    grey = span == 0
    saturation = span / torch.where(grey, 1.0, most)
    red, green, blue = ((most.unsqueeze(-3) - x) / torch.where(grey, 1.0, span).unsqueeze(-3)).unbind(-3)
    is_red, is_green = x.select(-3, 0) == most, x.select(-3, 1) == most
    sixths = torch.where(is_red, blue - green, torch.where(is_green, (red + 2.0) - blue, (green + 4.0) - red))
    return (sixths * (1 / 6) + 1.0).fmod_(1.0), saturation, most


def _from_hsv(hue: torch.Tensor, saturation: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    sixths = hue * 6
    whole = torch.floor(sixths)
    part = sixths - whole
    rest = 1.0 - saturation
    falling = ((1.0 - saturation * part) * value).clamp_(0, 1)
    rising = ((saturation * part + rest) * value).clamp_(0, 1)
    low = (rest * value).clamp_(0, 1)

    def channel(behind: int) -> torch.Tensor:
        """As large as it can be for two sixths of the circle, then falling, low for two, and rising."""
        at = (whole - behind).remainder(6)
        slopes = torch.where(at == 1, falling, torch.where(at == 4, rising, low))
        return torch.where((at == 0) | (at == 5), value, slopes)

    return torch.stack([channel(behind) for behind in (0, 2, 4)], dim=-3)


@with_annotations()
def adjust_gamma(picture: Any, gamma: float, gain: float = 1.0) -> Any:
    """Computes gain * x ** gamma."""
    _factor(gamma, "gamma")
    if isinstance(picture, Image.Image):
        table = [int((256 - 1e-3) * gain * (v / 255) ** gamma) for v in range(256)] * 3
        return picture.convert("RGB").point(table).convert(picture.mode)
    x = picture if picture.is_floating_point() else to_dtype(picture, torch.float32, scale=True)
    x = x.pow(gamma)
    return to_dtype(x if gain == 1.0 else x.mul_(gain).clamp_(0, 1), picture.dtype, scale=True)


@with_annotations()
def adjust_sharpness(picture: Any, sharpness_factor: float) -> Any:
    """Scales the distance from the smoothed image: 0 is smooth, 1 changes nothing. The border is kept."""
    if isinstance(picture, Image.Image):
        return ImageEnhance.Sharpness(picture).enhance(sharpness_factor)
    factor = _factor(sharpness_factor, "sharpness_factor")
    channels = _channels(picture, "adjust_sharpness")
    if picture.numel() == 0 or min(picture.shape[-2:]) <= 2:
        return picture
    if _bytes.can_sharpen(picture):
        return _bytes.mixed_with_smooth(picture, 5 / 13, 1 / 13, 1.0 - factor)
    out = picture.clone() if picture.is_floating_point() else picture.float()
    out = out.reshape(-1, *picture.shape[-3:])
    weights = torch.full((3, 3), 1 / 13, dtype=out.dtype, device=out.device)
    weights[1, 1] = 5 / 13
    smooth = torch.nn.functional.conv2d(out, weights.expand(channels, 1, 3, 3), groups=channels)
    smooth = smooth if picture.is_floating_point() else smooth.round_()
    inner = out[..., 1:-1, 1:-1]
    inner.add_(smooth.sub_(inner), alpha=1.0 - factor)
    return _finish(out, picture.dtype).reshape(picture.shape)


@with_annotations()
def invert(picture: Any) -> Any:
    """Inverts the image."""
    if isinstance(picture, Image.Image):
        return ImageOps.invert(picture)
    check_picture(picture, "invert")
    if picture.dtype is torch.bool:
        raise TypeError("invert takes integers and floats; got torch.bool, which ~x inverts")
    if picture.is_floating_point():
        return 1.0 - picture
    return ~picture if picture.dtype is torch.uint8 else picture.bitwise_xor(largest(picture.dtype))


@with_annotations()
def solarize(picture: Any, threshold: float) -> Any:
    """Inverts values of at least the threshold."""
    if isinstance(picture, Image.Image):
        return ImageOps.solarize(picture, threshold)  # type: ignore[arg-type]
    check_picture(picture, "solarize")
    if threshold > largest(picture.dtype):
        raise TypeError(f"threshold={threshold} is beyond white, {largest(picture.dtype)}")
    if _bytes.is_fast(picture):
        return _bytes.replaced(picture, torch.where(_values() >= threshold, ~_values(), _values()))
    return torch.where(picture >= threshold, invert(picture), picture)


@with_annotations()
def posterize(picture: Any, bits: int) -> Any:
    """Keeps the most significant bits of each element."""
    if isinstance(picture, Image.Image):
        return ImageOps.posterize(picture, bits)
    check_picture(picture, "posterize")
    if not isinstance(bits, int) or not 0 <= bits <= 8 or picture.dtype is torch.bool:
        raise TypeError(f"posterize keeps 0 to 8 bits of numbers; got bits={bits!r} for {picture.dtype}")
    if picture.is_floating_point():
        levels = 1 << bits
        return picture.mul(levels).floor_().clamp_(0, levels - 1).mul_(1.0 / levels)
    kept = 8 * picture.element_size() if picture.dtype is torch.uint8 else largest(picture.dtype).bit_length()
    return picture if bits >= kept else picture & (((1 << bits) - 1) << (kept - bits))


@with_annotations()
def autocontrast(picture: Any) -> Any:
    """Stretches each channel to the range from black to white."""
    if isinstance(picture, Image.Image):
        return ImageOps.autocontrast(picture)
    _channels(picture, "autocontrast")
    if picture.numel() == 0:
        return picture
    if _bytes.is_fast(picture):
        values, there = _values(), _bytes.counts(picture) > 0
        least, most = there.int().argmax(1, keepdim=True), 255 - there.flip(1).int().argmax(1, keepdim=True)
        return _bytes.replaced(picture, _stretched(values.float(), least.float(), most.float(), torch.uint8))
    x = picture if picture.is_floating_point() else picture.float()
    ends = x.amin(dim=(-2, -1), keepdim=True), x.amax(dim=(-2, -1), keepdim=True)
    return _stretched(x, *ends, picture.dtype)


def _stretched(x: torch.Tensor, least: torch.Tensor, most: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    flat = least == most
    step = torch.where(flat, 1.0, (most - least).mul_(1.0 / largest(dtype)))
    return _finish((x - torch.where(flat, 0.0, least)).div_(step), dtype)


@with_annotations()
def equalize(picture: Any) -> Any:
    """Equalises the histogram of each channel."""
    if isinstance(picture, Image.Image):
        return ImageOps.equalize(picture)
    check_picture(picture, "equalize")
    if picture.numel() == 0:
        return picture
    x = to_dtype(picture, torch.uint8, scale=True)  # the histogram is one of bytes
    if _bytes.is_fast(x):
        made = _bytes.replaced(x, _equal_shares(_bytes.counts(x)))
    else:
        flat = x.reshape(-1, x.shape[-2] * x.shape[-1]).long()
        zeros = torch.zeros(len(flat), 256, dtype=torch.int64, device=x.device)
        table = _equal_shares(zeros.scatter_add_(1, flat, torch.ones_like(flat)))
        made = table.gather(1, flat).reshape(x.shape)
    return to_dtype(made, picture.dtype, scale=True)


def _equal_shares(counts: torch.Tensor) -> torch.Tensor:
    """Of how often each value is there (n, 256), what it becomes. The pixels beside those of the largest value are
    shared out over 255 steps, halves of a step up."""
    sums = counts.cumsum(1)
    largest_value = 255 - (counts.flip(1) > 0).int().argmax(1, keepdim=True)
    step = (sums[:, -1:] - counts.gather(1, largest_value)).div_(255, rounding_mode="floor")
    table = (sums - counts + step // 2).div(step.clamp(min=1), rounding_mode="floor").clamp_(0, 255)
    return torch.where(step == 0, torch.arange(256, device=counts.device), table).to(torch.uint8)


@with_annotations()
def permute_channels(picture: Any, permutation: list[int]) -> Any:
    """Permutes the channels."""
    channels = get_dimensions(picture)[0]
    if len(permutation) != channels:
        raise ValueError(f"permutation has {len(permutation)} numbers, but the picture has {channels} channels")
    if isinstance(picture, Image.Image):
        return to_pil_image(permute_channels(pil_to_tensor(picture), permutation))
    return picture[..., list(permutation), :, :]
