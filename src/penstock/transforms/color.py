# SPDX-License-Identifier: Apache-2.0
"""Transforms of colors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._transform import RandomTransform, Transform
from .functional import blur
from .functional import color as F


def _range(value: Any, name: str, center: float = 1.0, least: float = 0.0, most: float = float("inf")) -> Any:
    """The least and the most factor; None where there is nothing to do."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"{name} as one number is not negative; got {value}")
        low, high = center - value, center + value
        low = max(low, 0.0) if center else low
    elif isinstance(value, Sequence) and len(value) == 2:
        low, high = map(float, value)
    else:
        raise TypeError(f"{name} takes a number, or the least and the most; got {value!r}")
    if not least <= low <= high <= most:
        raise ValueError(f"{name} must be between {least} and {most}, the smaller one first; got {value}")
    return None if low == high == center else (float(low), float(high))


class ColorJitter(Transform):
    """Changes brightness, contrast, saturation and hue by random factors, in a random order."""

    moves = False

    def __init__(self, brightness: Any = None, contrast: Any = None, saturation: Any = None, hue: Any = None):
        super().__init__()
        self.brightness, self.contrast = _range(brightness, "brightness"), _range(contrast, "contrast")
        self.saturation, self.hue = _range(saturation, "saturation"), _range(hue, "hue", 0.0, -0.5, 0.5)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        order = torch.randperm(4).tolist()
        ranges = (self.brightness, self.contrast, self.saturation, self.hue)
        return {"order": order, "factors": [r and torch.empty(1).uniform_(*r).item() for r in ranges]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        steps = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in params["order"]:
            if params["factors"][i] is not None:
                inpt = steps[i](inpt, params["factors"][i])
        return inpt


class Grayscale(Transform):
    """Converts to greyscale (luma), with one or three channels."""

    moves = False

    def __init__(self, num_output_channels: int = 1):
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.rgb_to_grayscale(inpt, self.num_output_channels)


class RandomGrayscale(RandomTransform):
    """Converts to greyscale (luma) with the probability `p`; the number of channels is kept."""

    moves = False

    def __init__(self, p: float = 0.1):
        super().__init__(p)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        from .functional.geometry import get_dimensions

        return F.rgb_to_grayscale(inpt, get_dimensions(inpt)[0])


class RandomInvert(RandomTransform):
    """Inverts the image with the probability `p`."""

    moves = False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.invert(inpt)


class RandomPosterize(RandomTransform):
    """Keeps the `bits` most significant bits, with the probability `p`."""

    moves = False

    def __init__(self, bits: int, p: float = 0.5):
        super().__init__(p)
        self.bits = bits

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.posterize(inpt, self.bits)


class RandomSolarize(RandomTransform):
    """Inverts values of at least `threshold`, with the probability `p`."""

    moves = False

    def __init__(self, threshold: float, p: float = 0.5):
        super().__init__(p)
        self.threshold = threshold

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.solarize(inpt, self.threshold)


class RandomAdjustSharpness(RandomTransform):
    """Changes the sharpness by a factor, with the probability `p`."""

    moves = False

    def __init__(self, sharpness_factor: float, p: float = 0.5):
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.adjust_sharpness(inpt, self.sharpness_factor)


class RandomAutocontrast(RandomTransform):
    """Stretches each channel to the range from black to white, with the probability `p`."""

    moves = False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.autocontrast(inpt)


class RandomEqualize(RandomTransform):
    """Equalises the histogram of each channel, with the probability `p`."""

    moves = False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.equalize(inpt)


class GaussianBlur(Transform):
    """Blurs with a Gaussian of a random `sigma`; `kernel_size` is a number, or (x, y)."""

    moves = False

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)):
        super().__init__()
        self.kernel_size = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(self.kernel_size) == 1:
            self.kernel_size *= 2
        if any(k < 1 or k % 2 == 0 for k in self.kernel_size):
            raise ValueError(f"kernel_size takes odd positive numbers; got {kernel_size}")
        low, high = (sigma, sigma) if isinstance(sigma, (int, float)) else sigma
        if not 0 < low <= high:
            raise ValueError(f"sigma takes positive numbers, the least first; got {sigma}")
        self.sigma = (float(low), float(high))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"sigma": torch.empty(1).uniform_(*self.sigma).item()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return blur.gaussian_blur(inpt, self.kernel_size, params["sigma"])
