# SPDX-License-Identifier: Apache-2.0
"""Crops random windows of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .... import fn
from . import _windows
from ._checks import both, fill_of, is_sequence, padding_mode_of, padding_of, positive_range, size_of
from ._enums import SUPPORTED, InterpolationMode, check_mode, mode_of
from ._picture import Picture
from ._resized import TYPES
from .operator import ArgumentValidateRule, Operator, get_HWC_from_layout_pipeline

_PADDINGS = (1, 2, 4)


class _Size(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, size: Any, **kwargs: Any) -> None:
        size_of(size)


class _Padding(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, padding: Any, pad_if_needed: Any, fill: Any, padding_mode: Any, **kwargs: Any) -> None:
        if padding is not None:
            padding_of(padding, _PADDINGS)
        if not isinstance(pad_if_needed, bool):
            raise TypeError(f"pad_if_needed takes True or False, got {pad_if_needed!r}")
        fill_of(fill)
        padding_mode_of(padding_mode)


class _ScaleAndRatio(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, scale: Any, ratio: Any, interpolation: Any, **kwargs: Any) -> None:
        positive_range(scale, "scale")
        positive_range(ratio, "ratio")
        check_mode(interpolation)


class _RandomWindow(Operator):
    """Base of transforms that crop a random part, with output height and width `size`."""

    preprocess_data = get_HWC_from_layout_pipeline

    @classmethod
    def adjust_size(cls, size: int | Sequence[int]) -> tuple[int, int]:
        """Height and width.

        >>> RandomCrop.adjust_size(5), RandomResizedCrop.adjust_size([5, 6])
        ((5, 5), (5, 6))
        """
        return both(size_of(size))


class RandomCrop(_RandomWindow):
    """Crops a window of a fixed size from each image, at a random position; all positions are equally likely.

    Accepts any type.

    Parameters
    ----------
    size
        (height, width), or one number for both; positive integers.
    padding
        Padding that is added before: one number, (left and right, top and bottom), or (left, top, right, bottom); not
        negative. None: no padding.
    pad_if_needed
        Whether an image that is still too small is padded on both sides by what is missing. Otherwise it is an error.
    fill
        With `padding_mode` "constant": the value of the padding, or one per channel; None is 0. Clamped to the range of
        the type and truncated.
    padding_mode
        "constant", "edge" (the outermost pixel), "reflect" (mirrored at it) or "symmetric" (mirrored after it).
    device
        "cpu" or "gpu".

    Raises
    ------
    TypeError, ValueError
        For other arguments.

    >>> import torch
    >>> RandomCrop(4, padding=2)(torch.zeros(3, 3, 3)).shape
    torch.Size([3, 4, 4])
    """

    arg_rules = (_Size, _Padding)

    @classmethod
    def adjust_padding(cls, padding: int | Sequence[int] | None) -> tuple[int, int, int, int]:
        """Left, top, right, bottom.

        >>> RandomCrop.adjust_padding(None), RandomCrop.adjust_padding((3, 4))
        ((0, 0, 0, 0), (3, 4, 3, 4))
        """
        return (0, 0, 0, 0) if padding is None else padding_of(padding, _PADDINGS)

    @staticmethod
    def adjust_fill(fill: Any) -> Any:
        """A number or a tuple of them; None is 0.

        >>> RandomCrop.adjust_fill(None), RandomCrop.adjust_fill([3, 4])
        (0, (3, 4))
        """
        return 0 if fill is None else tuple(fill) if is_sequence(fill) else fill

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: int | float | Sequence[int] | Sequence[float] | None = 0,
        padding_mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
        device: Literal["cpu", "gpu"] = "cpu",
    ):
        super().__init__(
            device, size=size, padding=padding, pad_if_needed=pad_if_needed, fill=fill, padding_mode=padding_mode
        )
        self.size, self.padding = self.adjust_size(size), self.adjust_padding(padding)
        self.pad_if_needed, self.fill, self.padding_mode = pad_if_needed, self.adjust_fill(fill), padding_mode

    def _apply(self, picture: Picture) -> Picture:
        data = _windows.random_crop(
            picture.data,
            size=list(self.size),
            padding=list(self.padding),
            pad_if_needed=self.pad_if_needed,
            fill_values=fill_of(self.fill),
            out_of_bounds_policy=padding_mode_of(self.padding_mode),
        )
        return picture.made(data)


class RandomResizedCrop(_RandomWindow):
    """Crops a window of random area and aspect ratio from each image, and resizes it.

    Of ten windows of random area, aspect ratio (uniform in its logarithm) and position, the first one that fits is
    used; if none fits, the centre of the image. Filters use pixels of the image beyond the border of the window.
    Elements are uint8, int16, uint16 or float32.

    Parameters
    ----------
    size
        (height, width) of the output, or one number for both; positive integers.
    scale
        (min, max) of the window's area as a share of the image's; positive.
    ratio
        (min, max) of width / height of the window; positive.
    interpolation
        `InterpolationMode` NEAREST, BILINEAR, BICUBIC or LANCZOS, or its number in Pillow (0, 2, 3, 1).
    antialias
        Whether to average pixels when a window is shrunk, not only to sample them. None is True. No effect with
        NEAREST.
    device
        "cpu" or "gpu".

    Raises
    ------
    TypeError, ValueError
        For other arguments.
    NotImplementedError
        For unsupported interpolation modes.

    >>> import torch
    >>> RandomResizedCrop(8)(torch.zeros(3, 16, 24, dtype=torch.uint8)).shape
    torch.Size([3, 8, 8])
    """

    arg_rules = (_Size, _ScaleAndRatio)

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: InterpolationMode | int = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
        device: Literal["cpu", "gpu"] = "cpu",
    ):
        super().__init__(device, size=size, scale=scale, ratio=ratio, interpolation=interpolation)
        self.size, self.interpolation = self.adjust_size(size), mode_of(interpolation)
        self.scale, self.ratio = positive_range(scale, "scale"), positive_range(ratio, "ratio")
        self.antialias = antialias is None or bool(antialias)

    def _apply(self, picture: Picture) -> Picture:
        picture.check_type("RandomResizedCrop", TYPES)
        data = fn.random_resized_crop(
            picture.data,
            size=list(self.size),
            random_area=list(self.scale),
            random_aspect_ratio=list(self.ratio),
            num_attempts=10,
            interp_type=SUPPORTED[self.interpolation],
            antialias=self.antialias,
        )
        return picture.made(data)
