# SPDX-License-Identifier: Apache-2.0
"""Sizes, windows and mirrors of pictures: images of Pillow, or tensors (..., C, H, W)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import torch
from PIL import Image, ImageOps
from torch.nn.functional import interpolate
from torch.nn.functional import pad as _torch_pad

from .._picture import Picture, of_image, of_tensor
from ._annotations import canvas, with_annotations


class InterpolationMode(Enum):
    """Interpolation modes; the members of torchvision's class of that name."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_PILLOW = {"nearest": 0, "nearest-exact": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
_BY_NUMBER = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_SMOOTH = ("bilinear", "bicubic", "lanczos")  # modes of tensors, beside the nearest
_ROUNDED = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)  # others are cut, as by torchvision
_PADDING = ("constant", "edge", "reflect", "symmetric")


def name_of(interpolation: Any) -> str:
    """The name of a mode: of a member, here or in torchvision, of its value, or of Pillow's number."""
    name = getattr(interpolation, "value", interpolation)
    name = _BY_NUMBER.get(name, name)
    if name not in _PILLOW:
        raise ValueError(f"interpolation takes an InterpolationMode or one of Pillow's numbers 0 to 5; got {name!r}")
    return name


def pillow_mode(name: str) -> Image.Resampling:
    return Image.Resampling(_PILLOW[name])


def check_picture(picture: Any, who: str) -> None:
    if not isinstance(picture, (Image.Image, torch.Tensor, Picture)):
        raise TypeError(f"{who} takes an image of Pillow or a tensor; got {type(picture).__name__}")


def get_size(picture: Any) -> list[int]:
    """Returns height and width."""
    if isinstance(picture, Image.Image):
        return [picture.height, picture.width]
    size = canvas(picture)
    if size is not None:
        return list(size)
    check_picture(picture, "get_size")
    return list(picture.size) if isinstance(picture, Picture) else _last_extents(picture)[-2:]


def get_dimensions(picture: Any) -> list[int]:
    """Returns channels, height and width."""
    if isinstance(picture, Image.Image):
        return [len(picture.getbands()), picture.height, picture.width]
    check_picture(picture, "get_dimensions")
    return [picture.pixels.shape[-3], *picture.size] if isinstance(picture, Picture) else _last_extents(picture)


def _last_extents(x: torch.Tensor) -> list[int]:
    """Channels, height and width; a tensor (H, W) has one channel."""
    if x.ndim < 2:
        raise TypeError(f"a picture has two or more axes; got a tensor of shape {tuple(x.shape)}")
    return [1, *x.shape] if x.ndim == 2 else list(x.shape[-3:])


def resized_size(height: int, width: int, size: Any, max_size: int | None) -> tuple[int, int]:
    """Height and width that `Resize` makes of others. Lengths are cut, not rounded."""
    if size is not None and not isinstance(size, int) and len(size) == 2:
        if max_size is not None:
            raise ValueError(f"max_size={max_size} goes with the length of the shorter edge as size, not with {size}")
        return int(size[0]), int(size[1])
    short, long = min(height, width), max(height, width)
    if size is None:
        if max_size is None:
            raise ValueError("size=None needs a max_size, the length of the longer edge")
        wanted = int(max_size * short / long), max_size
    else:
        edge = size if isinstance(size, int) else int(size[0])
        wanted = edge, int(edge * long / short)
        if max_size is not None:
            if max_size <= edge:
                raise ValueError(f"max_size={max_size} has to be larger than size={edge}, that of the shorter edge")
            if wanted[1] > max_size:
                wanted = int(max_size * wanted[0] / wanted[1]), max_size
    return wanted if height <= width else wanted[::-1]


@with_annotations(mask={"interpolation": InterpolationMode.NEAREST, "antialias": False})
def resize(
    picture: Any,
    size: int | Sequence[int] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resizes images as `Image.resize` does, tensors as `interpolate` does.

    >>> resize(Image.new("RGB", (60, 40)), 20).size
    (30, 20)
    """
    name, (height, width) = name_of(interpolation), get_size(picture)
    wanted = resized_size(height, width, size, max_size)
    if min(wanted) < 1 <= min(height, width):
        raise ValueError(f"resize makes pictures of at least one pixel; got {wanted[0]} x {wanted[1]}")
    if isinstance(picture, Image.Image):
        if wanted == (height, width):
            return picture
        view = of_image(picture) if name in ("bilinear", "bicubic", "lanczos", "box") else None
        if view is None:
            return picture.resize(wanted[::-1], Image.Resampling(_PILLOW[name]))
        return view.resized(wanted, name, True).image()
    if isinstance(picture, Picture):
        if picture.mode is not None and name != "hamming" or name in ("bilinear", "bicubic"):
            name = "nearest" if picture.mode is not None and name == "nearest-exact" else name
            return picture.resized(wanted, name, bool(antialias))
        return as_picture(resize(picture.given_back(), wanted, interpolation, None, antialias))
    if wanted == (height, width):
        return picture
    if name not in ("nearest", "nearest-exact", *_SMOOTH):
        raise ValueError(f"tensors can be resized by nearest, nearest-exact, {', '.join(_SMOOTH)}; got {name}")
    if name == "lanczos" and not antialias:
        raise ValueError("tensors are resized by lanczos with antialias=True only")
    view = of_tensor(picture) if name in ("bilinear", "bicubic") and picture.numel() else None
    if view is not None:
        return view.resized(wanted, name, bool(antialias)).tensor()
    return _interpolated(picture, wanted, name, name in _SMOOTH and bool(antialias))


def _interpolated(x: torch.Tensor, size: tuple[int, int], name: str, antialias: bool) -> torch.Tensor:
    shape, dtype = x.shape, x.dtype
    if x.numel() == 0:
        return x.reshape(*shape[:-2], *size)
    if name not in _SMOOTH and x.device.type == "cpu":
        return _nearest(x, size, name)
    known = (torch.float32, torch.float64, *([] if name in ("bilinear", "bicubic") else [torch.uint8]))
    cast = dtype not in known  # PyTorch has not all types for all layouts
    four = x.reshape(-1, *shape[-3:])
    four = four.float() if cast else four
    four = interpolate(four, size=list(size), mode=name, antialias=antialias, **_corners(name))
    if cast:
        if name in ("bicubic", "lanczos") and dtype is torch.uint8:
            four = four.clamp_(0, 255)
        four = (four.round_() if dtype in _ROUNDED else four).to(dtype)
    return four.reshape(*shape[:-2], *size)


def _nearest(x: torch.Tensor, size: tuple[int, int], name: str) -> torch.Tensor:
    """The pixels that `interpolate` chooses, which takes twice as long on the CPU: it only chooses rows and columns
    here."""
    number = torch.float64 if x.dtype is torch.float64 else torch.float32  # its rounding depends on the type
    rows, columns = (
        interpolate(torch.arange(n, dtype=number)[None, None, None], size=(1, wanted), mode=name).long().reshape(-1)
        for n, wanted in zip(x.shape[-2:], size)
    )
    of_picture = (rows[:, None] * x.shape[-1] + columns).reshape(1, -1)
    pictures = x.reshape(-1, x.shape[-2] * x.shape[-1])
    return pictures.gather(1, of_picture.expand(len(pictures), -1)).reshape(*x.shape[:-2], *size)


def _corners(name: str) -> dict[str, Any]:
    return {"align_corners": False} if name in _SMOOTH else {}


def as_picture(x: Any) -> Any:
    """A view on which native code runs, where there is one; else what was given."""
    view = of_image(x) if isinstance(x, Image.Image) else of_tensor(x) if isinstance(x, torch.Tensor) else None
    return x if view is None else view


@with_annotations(mask={})
def crop(picture: Any, top: int, left: int, height: int, width: int) -> Any:
    """Crops a window, with zeros outside the image."""
    full_height, full_width = get_size(picture)
    if isinstance(picture, Image.Image):
        return picture.crop((left, top, left + width, top + height))
    inside = top >= 0 and left >= 0 and top + height <= full_height and left + width <= full_width
    if isinstance(picture, Picture):
        if inside:
            return picture.cropped(top, left, height, width)
        return as_picture(crop(picture.given_back(), top, left, height, width))
    if inside:
        return picture[..., top : top + height, left : left + width]
    part = picture[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    before = [min(max(-left, 0), width), min(max(-top, 0), height)]
    missing = [before[0], width - part.shape[-1] - before[0], before[1], height - part.shape[-2] - before[1]]
    return _torch_pad(part, missing)


@with_annotations(mask={})
def center_crop(picture: Any, size: int | Sequence[int]) -> Any:
    """Crops the centre; smaller images are padded with zeros first."""
    height, width = pair(size)
    full_height, full_width = get_size(picture)
    if height > full_height or width > full_width:
        extra = [max(width - full_width, 0), max(height - full_height, 0)]
        borders = [extra[0] // 2, extra[1] // 2, (extra[0] + 1) // 2, (extra[1] + 1) // 2]
        picture = pad(picture, borders, 0)
        full_height, full_width = get_size(picture)
    if (height, width) == (full_height, full_width):
        return picture
    return crop(picture, round((full_height - height) / 2), round((full_width - width) / 2), height, width)


@with_annotations(mask={"interpolation": InterpolationMode.NEAREST, "antialias": False})
def resized_crop(
    picture: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: Any = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """Crops a window and resizes it; pixels outside the window are not used."""
    view = as_picture(picture)
    made = resize(crop(view, top, left, height, width), size, interpolation, None, antialias)
    return made.given_back() if isinstance(made, Picture) and not isinstance(picture, Picture) else made


@with_annotations(mask={})
def horizontal_flip(picture: Any) -> Any:
    """Flips left and right."""
    if isinstance(picture, Image.Image):
        return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    check_picture(picture, "horizontal_flip")
    return picture.flipped(-1) if isinstance(picture, Picture) else picture.flip(-1)


@with_annotations(mask={})
def vertical_flip(picture: Any) -> Any:
    """Flips top and bottom."""
    if isinstance(picture, Image.Image):
        return picture.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    check_picture(picture, "vertical_flip")
    return picture.flipped(-2) if isinstance(picture, Picture) else picture.flip(-2)


hflip, vflip = horizontal_flip, vertical_flip


def pair(size: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) of a number, or of one or two of them."""
    if isinstance(size, int):
        return size, size
    if len(size) not in (1, 2):
        raise ValueError(f"size takes a number, or height and width; got {size!r}")
    return int(size[0]), int(size[-1])


def borders(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """Left, top, right, bottom."""
    values = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(values) not in (1, 2, 4):
        raise ValueError(f"padding takes a number, (x, y), or (left, top, right, bottom); got {padding!r}")
    return (values * (4 // len(values)))[:4]  # type: ignore[return-value]


@with_annotations(mask={})
def pad(picture: Any, padding: int | Sequence[int], fill: Any = None, padding_mode: str = "constant") -> Any:
    """Adds a border: `fill`, or the repeated or mirrored image ("edge", "reflect", "symmetric")."""
    if padding_mode not in _PADDING:
        raise ValueError(f"padding_mode takes {', '.join(_PADDING)}; got {padding_mode!r}")
    left, top, right, bottom = borders(padding)
    if isinstance(picture, Picture):
        return as_picture(pad(picture.given_back(), padding, fill, padding_mode))
    check_picture(picture, "pad")
    if isinstance(picture, Image.Image):
        if padding_mode == "constant" and picture.mode != "P":
            return ImageOps.expand(picture, (left, top, right, bottom), pillow_fill(fill, picture))
        return _padded_image(picture, (left, top, right, bottom), fill, padding_mode)
    if padding_mode == "constant":
        return _filled(picture, (left, right, top, bottom), 0 if fill is None else fill)
    return _bordered(picture, ((top, bottom), (left, right)), padding_mode)


def _bordered(x: torch.Tensor, sides: tuple[tuple[int, int], tuple[int, int]], mode: str) -> torch.Tensor:
    """Repeats or mirrors the picture around it. `sides`: before and after the rows and the columns; negative ones
    crop."""
    (top, bottom), (left, right) = [(max(before, 0), max(after, 0)) for before, after in sides]
    height, width = x.shape[-2:]
    for n, before, after in ((height, top, bottom), (width, left, right)):
        most = n - (mode == "reflect")
        if not n or (mode != "edge" and max(before, after) > most):
            raise ValueError(f"padding_mode={mode!r} pads {n} pixels by at most {most}; got {before} and {after}")
    out = x.new_empty((*x.shape[:-2], height + top + bottom, width + left + right))
    out[..., top : top + height, left : left + width] = x
    _fill_border(out[..., top : top + height, :], -1, left, width, mode)
    _fill_border(out, -2, top, height, mode)
    for dim, (before, after) in zip((-2, -1), sides):
        begin, end = max(-before, 0), max(-after, 0)
        out = out.narrow(dim, begin, out.shape[dim] - begin - end)
    return out


def _fill_border(x: torch.Tensor, dim: int, begin: int, n: int, mode: str) -> None:
    """Fills the border of one dimension from its `n` elements from `begin` on."""
    end, skip = begin + n, int(mode == "reflect")
    after = x.shape[dim] - end
    if mode == "edge":
        x.narrow(dim, 0, begin).copy_(x.narrow(dim, begin, 1))
        x.narrow(dim, end, after).copy_(x.narrow(dim, end - 1, 1))
    else:
        x.narrow(dim, 0, begin).copy_(x.narrow(dim, begin + skip, begin).flip(dim))
        x.narrow(dim, end, after).copy_(x.narrow(dim, end - skip - after, after).flip(dim))


def _filled(x: torch.Tensor, sides: tuple[int, int, int, int], fill: Any) -> torch.Tensor:
    if not isinstance(fill, (int, float)) and len(fill) == 1:
        fill = fill[0]
    if isinstance(fill, (int, float)):
        return _torch_pad(x, sides, value=float(fill))
    left, right, top, bottom = sides
    height, width = x.shape[-2:]
    values = torch.tensor(fill, device=x.device).to(x.dtype).reshape(-1, 1, 1)
    out = values.expand(*x.shape[:-2], height + top + bottom, width + left + right).clone()
    out[..., top : top + height, left : left + width] = x
    return out


def pillow_fill(fill: Any, image: Image.Image) -> Any:
    """As Pillow takes it: an integer, or a tuple of one for each band."""
    bands = len(image.getbands())
    values = list(fill) if isinstance(fill, (tuple, list)) else [0 if fill is None else fill] * bands
    if len(values) == 1:
        values *= bands
    if len(values) != bands:
        raise ValueError(f"fill has {len(values)} values, but the image has {bands} bands")
    if image.mode == "F":
        return values[0]
    whole = [int(v) for v in values]
    return whole[0] if bands == 1 else tuple(whole)


def _padded_image(image: Image.Image, sides: tuple[int, int, int, int], fill: Any, mode: str) -> Image.Image:
    import numpy as np

    left, top, right, bottom = sides
    if image.mode == "P" and mode == "constant":
        made = ImageOps.expand(image, sides, pillow_fill(fill, image))
    else:
        array = np.asarray(image)
        widths = [(top, bottom), (left, right), (0, 0)][: array.ndim]
        made = Image.fromarray(np.pad(array, widths, mode=mode))  # type: ignore[call-overload]
    palette = image.getpalette() if image.mode == "P" else None
    if palette is not None:
        made = made if made.mode == "P" else made.convert("P")
        made.putpalette(palette)
    return made
