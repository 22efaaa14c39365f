# SPDX-License-Identifier: Apache-2.0
"""Changes the colours of images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np

from .... import fn
from ....types import DALIDataType, DALIImageType
from . import _grey
from ._checks import is_sequence, probability, value_range
from ._picture import Picture
from .operator import ArgumentValidateRule, Operator, get_HWC_from_layout_pipeline

_COLOURED = "one channel (grey), three (RGB) or four (RGBA)"


def factor_range(value: Any, name: str) -> tuple[float, float]:
    """(min, max) of a factor around 1."""
    accepted = "a non-negative number, or two, (min, max)"
    if isinstance(value, Real):
        low, high = max(0.0, 1.0 - float(value)), 1.0 + float(value)
        wrong = not (value >= 0 and np.isfinite(high))
    elif is_sequence(value):
        low, high = value_range(value, name)
        wrong = low < 0
    else:
        raise ValueError(f"{name} takes {accepted}; got {value!r}")
    if wrong:
        raise ValueError(f"{name} takes {accepted}; got {value!r}")
    return low, high


def hue_range(value: Any) -> tuple[float, float]:
    """(min, max), with 1 for a full rotation."""
    accepted = "a number in [0, 0.5], or two in [-0.5, 0.5], (min, max)"
    if isinstance(value, Real):
        low, high = -float(value), float(value)
        wrong = not 0 <= value <= 0.5
    elif is_sequence(value):
        low, high = value_range(value, "hue")
        wrong = low < -0.5 or high > 0.5
    else:
        raise ValueError(f"hue takes {accepted}; got {value!r}")
    if wrong:
        raise ValueError(f"hue takes {accepted}; got {value!r}")
    return low, high


class _Factors(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, brightness: Any, contrast: Any, saturation: Any, hue: Any, **kwargs: Any) -> None:
        for name, value in (("brightness", brightness), ("contrast", contrast), ("saturation", saturation)):
            factor_range(value, name)
        hue_range(hue)


class _Channels(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, num_output_channels: Any, **kwargs: Any) -> None:
        if num_output_channels not in (1, 3):
            raise ValueError(f"num_output_channels takes 1 or 3, got {num_output_channels!r}")


class _Probability(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, p: Any, **kwargs: Any) -> None:
        probability(p)


def check_type(picture: Picture, who: str) -> None:
    picture.check_type(who, ("uint8", "int16", "int32", "float16", "float32"))


def coloured(picture: Picture, who: str, grey: Callable, rgb: Callable) -> Picture:
    """Applies `grey` to images with one channel, and `rgb` to the colours of those with three or four, as HWC; alpha is
    kept."""
    check_type(picture, who)
    if picture.channels not in (1, 3, 4):
        raise ValueError(f"{who} takes pictures of {_COLOURED}; got {picture.channels} channels")
    picture = picture.as_layout("HWC")
    if picture.channels == 1:
        return grey(picture)
    if picture.channels == 3:
        return rgb(picture)
    return rgb(picture.channels_of(0, 3)).joined(picture.channels_of(3, 4))


def grey(picture: Picture, num_output_channels: int, who: str) -> Picture:
    """Converts to grey with one channel or three equal ones. Alpha is removed."""
    check_type(picture, who)
    if picture.channels not in (1, 3, 4):
        raise ValueError(f"{who} takes pictures of {_COLOURED}; got {picture.channels} channels")
    if picture.channels == 1:
        if num_output_channels == 1:
            return picture
        axis = picture.layout.index("C")
        return picture.made(fn.cat(*[picture.data] * 3, axis=axis), channels=3)
    picture = picture.as_layout("HWC")
    if picture.channels == 4:
        picture = picture.channels_of(0, 3)
    if num_output_channels == 1 and picture.dtype == np.uint8:
        data = fn.color_space_conversion(picture.data, image_type=DALIImageType.RGB, output_type=DALIImageType.GRAY)
        return picture.made(data, channels=1)
    picture = picture.made(_grey.grey(picture.data))
    return picture if num_output_channels == 3 else picture.channels_of(0, 1)


class ColorJitter(Operator):
    """Changes hue, saturation, contrast and brightness by random factors, different for each image.

    Computes `brightness * (center + contrast * (x - center))` with a center of 128 for integers and 0.5 for floats,
    after changing hue and saturation in the YIQ space, which differs from a rotation in HSV (up to 24 degrees for a
    rotation of 90); see `fn.color_twist`. For grey images, only contrast and brightness change; alpha is kept. Elements
    are uint8, int16, int32, float16 or float32.

    Parameters
    ----------
    brightness, contrast, saturation
        A number b, for factors from max(0, 1 - b) to 1 + b; or (min, max). Not negative.
    hue
        A number h in [0, 0.5], for rotations from -h to h; or (min, max) in [-0.5, 0.5]. 1 is the whole circle.
    device
        "cpu" or "gpu".

    Raises
    ------
    ValueError
        For other arguments, and for images with another number of channels or type.

    >>> import torch
    >>> ColorJitter(brightness=(0.5, 0.5))(torch.full((3, 1, 2), 100, dtype=torch.uint8)).unique()
    tensor([50], dtype=torch.uint8)
    """

    arg_rules = (_Factors,)

    def __init__(
        self,
        brightness: int | float | Sequence[float] | None = 0.0,
        contrast: int | float | Sequence[int] | Sequence[float] | None = 0.0,
        saturation: int | float | Sequence[int] | Sequence[float] | None = 0.0,
        hue: int | float | Sequence[int] | Sequence[float] | None = 0.0,
        device: Literal["cpu", "gpu"] = "cpu",
    ):
        super().__init__(device, brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)
        self.brightness = factor_range(brightness, "brightness")
        self.contrast = factor_range(contrast, "contrast")
        self.saturation = factor_range(saturation, "saturation")
        self.hue = hue_range(hue)

    def _apply(self, picture: Picture) -> Picture:
        ranges = {"brightness": self.brightness, "contrast": self.contrast, "saturation": self.saturation}
        ranges["hue"] = (self.hue[0] * 360, self.hue[1] * 360)
        neutral = {"brightness": 1.0, "contrast": 1.0, "saturation": 1.0, "hue": 0.0}
        changed = {n: r for n, r in ranges.items() if r != (neutral[n], neutral[n])}
        if picture.channels == 1:
            changed = {n: r for n, r in changed.items() if n in ("brightness", "contrast")}
        if not changed:
            return picture
        drawn: dict[str, Any] = {
            n: lo if lo == hi else fn.random.uniform(range=[lo, hi]) for n, (lo, hi) in changed.items()
        }
        center = 0.5 if picture.dtype.kind == "f" else 128.0

        def on_grey(x: Picture) -> Picture:
            return x.made(fn.brightness_contrast(x.data, contrast_center=center, **drawn))

        return coloured(picture, "ColorJitter", on_grey, lambda x: x.made(fn.color_twist(x.data, **drawn)))


class Grayscale(Operator):
    """Converts images to greyscale: 0.299 R + 0.587 G + 0.114 B.

    Alpha is removed. Elements are uint8, int16, int32, float16 or float32.

    Parameters
    ----------
    num_output_channels
        1, or 3 for three equal channels.
    device
        "cpu" or "gpu".

    Raises
    ------
    ValueError
        For other numbers of channels, in the argument or in the images, and other types.

    >>> import torch
    >>> Grayscale()(torch.tensor([[[255]], [[0]], [[0]]], dtype=torch.uint8))
    tensor([[[76]]], dtype=torch.uint8)
    """

    arg_rules = (_Channels,)
    preprocess_data = get_HWC_from_layout_pipeline

    def __init__(self, num_output_channels: int = 1, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(device, num_output_channels=num_output_channels)
        self.num_output_channels = num_output_channels

    def _apply(self, picture: Picture) -> Picture:
        return grey(picture, self.num_output_channels, "Grayscale")


class RandomGrayscale(Operator):
    """Converts each image to greyscale with the probability `p`; the number of channels is kept.

    Types and channels as in `Grayscale`; alpha is kept.

    Parameters
    ----------
    p
        Probability, in [0.0, 1.0].
    device
        "cpu" or "gpu".

    Raises
    ------
    ValueError
        If `p` is not a probability.

    >>> import torch
    >>> RandomGrayscale(p=1.0)(torch.tensor([[[1.0]], [[0.0]], [[0.0]]])).flatten()
    tensor([0.2990, 0.2990, 0.2990])
    """

    arg_rules = (_Probability,)
    preprocess_data = get_HWC_from_layout_pipeline

    def __init__(self, p: float = 0.1, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(device, p=p)
        self.p = float(p)

    def _apply(self, picture: Picture) -> Picture:
        if self.p == 0 or picture.channels == 1:
            return picture
        share: Any = 1.0 if self.p == 1 else fn.cast(fn.random.coin_flip(probability=self.p), dtype=DALIDataType.FLOAT)

        def desaturated(x: Picture) -> Picture:
            return x.made(_grey.grey(x.data, share))

        return coloured(picture, "RandomGrayscale", desaturated, desaturated)
