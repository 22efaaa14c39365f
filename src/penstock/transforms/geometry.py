# SPDX-License-Identifier: Apache-2.0
"""Transforms that resize, crop and flip images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from ._transform import RandomTransform, Transform
from .functional import geometry as F
from .functional.convert import pil_to_tensor, to_pil_image
from .functional.geometry import InterpolationMode


def fill_for(fill: Any, x: Any) -> Any:
    """What to fill a picture with: `fill`, or where it is a dictionary, what it has for the type of the picture."""
    if not isinstance(fill, dict):
        return fill
    for kind, value in fill.items():
        if kind == "others" or isinstance(kind, type) and isinstance(x, kind):
            return value
    return 0


class Resize(Transform):
    """Resizes to (height, width), or so that the shorter edge has a given length; the longer one at most `max_size`.

    Images of Pillow get the pixels of `Image.resize`, which always averages when it shrinks. Tensors get PyTorch's,
    which averages unless `antialias` is False.
    """

    views = True

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ):
        super().__init__()
        F.name_of(interpolation)
        if size is None and max_size is None:
            raise ValueError("size=None needs a max_size, the length of the longer edge")
        if size is not None and not isinstance(size, int) and len(size) not in (1, 2):
            raise ValueError(f"size takes a number, or height and width; got {size!r}")
        self.size = [size] if isinstance(size, int) else size if size is None else list(size)
        self.interpolation, self.max_size, self.antialias = interpolation, max_size, antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.resize(inpt, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """Crops the centre of (height, width), or a square; smaller images are padded with zeros."""

    views, reads = True, False

    def __init__(self, size: int | Sequence[int]):
        super().__init__()
        self.size = F.pair(size)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.center_crop(inpt, self.size)


class RandomCrop(Transform):
    """Crops a window of (height, width) at a random position, after padding."""

    views, reads = True, False

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ):
        super().__init__()
        self.size, self.padding = F.pair(size), None if padding is None else F.borders(padding)
        self.pad_if_needed, self.fill, self.padding_mode = pad_if_needed, fill, padding_mode

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = F.get_size(flat_inputs[0])
        left, top, right, bottom = self.padding or (0, 0, 0, 0)
        wanted_height, wanted_width = self.size
        missing_y = max(wanted_height - height - top - bottom, 0) if self.pad_if_needed else 0
        missing_x = max(wanted_width - width - left - right, 0) if self.pad_if_needed else 0
        sides = (left + missing_x, top + missing_y, right + missing_x, bottom + missing_y)
        free_y = height + sides[1] + sides[3] - wanted_height
        free_x = width + sides[0] + sides[2] - wanted_width
        if min(free_y, free_x) < 0:
            raise ValueError(
                f"RandomCrop: size={self.size} is larger than the picture, {height} x {width}"
                f"{' with its padding' if self.padding else ''}; pad_if_needed=True pads it"
            )
        place = [int(torch.randint(0, free + 1, size=())) if free else 0 for free in (free_y, free_x)]
        return {"padding": sides, "window": (*place, wanted_height, wanted_width), "crops": bool(free_y or free_x)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if any(params["padding"]):
            inpt = F.pad(inpt, params["padding"], fill_for(self.fill, inpt), self.padding_mode)
        return F.crop(inpt, *params["window"]) if params["crops"] else inpt


class RandomResizedCrop(Transform):
    """Crops a window of a random share of the area (`scale`) and aspect ratio (`ratio`), and resizes it to `size`."""

    views = True

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ):
        super().__init__()
        for name, value in (("scale", scale), ("ratio", ratio)):
            if not isinstance(value, Sequence) or len(value) != 2:
                raise TypeError(f"{name} takes the least and the most; got {value!r}")
        F.name_of(interpolation)
        self.size, self.scale, self.ratio = F.pair(size), scale, ratio
        self.interpolation, self.antialias = interpolation, antialias
        self._log_ratio = torch.log(torch.tensor(ratio)).tolist()

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = F.get_size(flat_inputs[0])
        number = torch.empty(1)
        for _ in range(10):
            area = height * width * number.uniform_(*self.scale).item()
            aspect = torch.exp(number.uniform_(*self._log_ratio)).item()
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                top = torch.randint(0, height - h + 1, size=(1,)).item()
                return {"window": (top, torch.randint(0, width - w + 1, size=(1,)).item(), h, w)}
        # Nothing fits: the largest part in the middle whose aspect is allowed.
        least, most = min(self.ratio), max(self.ratio)
        w, h = width, height
        if width / height < least:
            h = round(width / least)
        elif width / height > most:
            w = round(height * most)
        return {"window": ((height - h) // 2, (width - w) // 2, h, w)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        top, left, height, width = params["window"]
        return F.resized_crop(inpt, top, left, height, width, self.size, self.interpolation, self.antialias)


class RandomHorizontalFlip(RandomTransform):
    """Flips left and right with the probability `p`."""

    views, reads = True, False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.horizontal_flip(inpt)


class RandomVerticalFlip(RandomTransform):
    """Flips top and bottom with the probability `p`."""

    views, reads = True, False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.vertical_flip(inpt)


class Pad(Transform):
    """Adds a border: `fill`, or the repeated or mirrored image ("edge", "reflect", "symmetric")."""

    def __init__(self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant"):
        super().__init__()
        F.borders(padding)
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError(f"padding_mode takes constant, edge, reflect or symmetric; got {padding_mode!r}")
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pad(inpt, self.padding, fill_for(self.fill, inpt), self.padding_mode)


class RandomErasing(RandomTransform):
    """Fills a random rectangle of an image with `value`: a number, one per channel, or "random" for normal noise."""

    moves = False

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0.0,
        inplace: bool = False,
    ):
        super().__init__(p)
        if isinstance(value, str) and value != "random":
            raise ValueError(f"value takes numbers or 'random'; got {value!r}")
        for name, limits in (("scale", scale), ("ratio", ratio)):
            if not isinstance(limits, Sequence) or len(limits) != 2:
                raise TypeError(f"{name} takes the least and the most; got {limits!r}")
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError(f"scale is a share of the area, in [0, 1]; got {scale}")
        self.scale, self.ratio, self.inplace = scale, ratio, inplace
        self.value = (
            None if value == "random" else [float(v) for v in (value if hasattr(value, "__len__") else [value])]
        )
        self._log_ratio = torch.log(torch.tensor(ratio)).tolist()

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        channels, height, width = F.get_dimensions(flat_inputs[0])
        if self.value is not None and len(self.value) not in (1, channels):
            raise ValueError(f"value has {len(self.value)} numbers, but the picture has {channels} channels")
        number = torch.empty(1)
        for _ in range(10):
            area = height * width * number.uniform_(*self.scale).item()
            aspect = torch.exp(number.uniform_(*self._log_ratio)).item()
            h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if h >= height or w >= width:
                continue
            values = torch.tensor(self.value)[:, None, None] if self.value else torch.empty(channels, h, w).normal_()
            top = torch.randint(0, height - h + 1, size=(1,)).item()
            return {"window": (top, torch.randint(0, width - w + 1, size=(1,)).item(), h, w), "values": values}
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not params:
            return inpt
        if isinstance(inpt, Image.Image):
            return to_pil_image(self.transform(pil_to_tensor(inpt), params), inpt.mode)
        top, left, height, width = params["window"]
        out = inpt if self.inplace else inpt.clone()
        out[..., top : top + height, left : left + width] = params["values"].to(inpt.device)
        return out
