# SPDX-License-Identifier: Apache-2.0
"""What lies beside pictures and moves with them: the masks, boxes and key points of `torchvision.tv_tensors`.

Their classes are recognised, not imported: programs that have none don't need torchvision.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

_PICTURES = ("Image", "Video")
_PLACES = ("BoundingBoxes", "KeyPoints")
_FORMATS = ("XYXY", "XYWH", "CXCYWH")


def kind_of(x: Any) -> str | None:
    """The name of the class of torchvision.tv_tensors that x is of, or None."""
    if type(x) is torch.Tensor or not isinstance(x, torch.Tensor):
        return None
    for base in type(x).__mro__:
        if base.__module__.startswith("torchvision.tv_tensors"):
            return base.__name__
    return None


def is_picture(x: Any) -> bool:
    return kind_of(x) in _PICTURES


def plain(x: Any) -> torch.Tensor:
    return x.as_subclass(torch.Tensor)


def like(made: torch.Tensor, x: Any, **changed: Any) -> Any:
    """A tensor as one of the class of x, with what else it knows."""
    cls = type(x)
    if hasattr(cls, "wrap"):
        return cls.wrap(made, x, **changed)
    known = {name: value for name, value in vars(x).items() if name in ("format", "canvas_size", "clamping_mode")}
    return cls._wrap(made, **{**known, **changed}) if known else made.as_subclass(cls)


def image_beside(annotation: Any, x: torch.Tensor) -> Any:
    """x as an Image of the library that the annotation comes from."""
    import sys

    package = sys.modules.get("torchvision.tv_tensors")
    return x if package is None else package.Image(x)


def canvas(x: Any) -> tuple[int, int] | None:
    """The size of the picture that places belong to; None for everything else."""
    return tuple(x.canvas_size) if kind_of(x) in _PLACES else None  # type: ignore[return-value]


def with_annotations(mask: dict[str, Any] | None = None) -> Callable[[Callable], Callable]:
    """For functions of pictures: those of tv_tensors keep their class, masks are pictures that get the arguments
    `mask` instead of their own, and places are moved by the function of the same name in this module."""

    def decorator(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(picture: Any, *args: Any, **kwargs: Any) -> Any:
            kind = kind_of(picture)
            if kind is None:
                return function(picture, *args, **kwargs)
            if kind in _PICTURES:
                return like(function(plain(picture), *args, **kwargs), picture)
            if mask is None:
                return picture  # which only moves
            if kind == "Mask":
                return like(_of_mask(function, mask, picture, args, kwargs), picture)
            move = _MOVES.get(function.__name__)
            if move is None:
                raise TypeError(
                    f"{function.__name__} of {kind} is not supported; use torchvision.transforms.v2 for this transform"
                )
            return move(picture, *args, **kwargs)

        return wrapper

    return decorator


def _of_mask(function: Callable, fixed: dict[str, Any], x: Any, args: Sequence[Any], kwargs: dict) -> torch.Tensor:
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    given = {**dict(zip(names, args)), **kwargs}
    exact = getattr(given.get("interpolation"), "value", None) == "nearest-exact"
    given.update({k: v for k, v in fixed.items() if not (exact and k == "interpolation")})
    x = plain(x)
    return function(x, **given) if x.ndim > 2 else function(x[None], **given)[0]


def _axes(x: Any) -> tuple[torch.Tensor, list[int], list[int]]:
    """The places as a plain tensor, which of its last axis are x and which y; the sizes of boxes are neither."""
    if kind_of(x) == "KeyPoints":
        return plain(x), [0], [1]
    if x.format.name not in _FORMATS:
        raise TypeError(f"rotated boxes ({x.format.name}) are not supported; use torchvision.transforms.v2")
    return plain(x), *(([0, 2], [1, 3]) if x.format.name == "XYXY" else ([0], [1]))


def _moved(x: Any, across: float, down: float) -> torch.Tensor:
    data, xs, ys = _axes(x)
    by = torch.zeros(data.shape[-1], dtype=data.dtype, device=data.device)
    by[xs], by[ys] = across, down
    return data + by


def _clamped(data: torch.Tensor, x: Any, size: tuple[int, int]) -> torch.Tensor:
    """Boxes, cut at the border; key points may lie outside."""
    if kind_of(x) == "KeyPoints" or x.clamping_mode is None:
        return data
    corners = _corners(data.float() if not data.is_floating_point() else data, x.format.name)
    for i, corner in enumerate(corners):
        corners[i] = corner.clamp(0, size[1 - i % 2])
    return _of_corners(corners, x.format.name).to(data.dtype)


def _corners(data: torch.Tensor, form: str) -> list[torch.Tensor]:
    a, b, c, d = data.unbind(-1)
    if form == "XYWH":
        c, d = a + c, b + d
    elif form == "CXCYWH":
        a, b = a - c / 2, b - d / 2
        c, d = a + c, b + d
    return [a, b, c, d]


def _of_corners(corners: list[torch.Tensor], form: str) -> torch.Tensor:
    a, b, c, d = corners
    if form == "XYWH":
        c, d = c - a, d - b
    elif form == "CXCYWH":
        c, d = c - a, d - b
        a, b = a + c / 2, b + d / 2
    return torch.stack([a, b, c, d], -1)


def _resize(x: Any, size: Any, interpolation: Any = None, max_size: int | None = None, antialias: Any = None) -> Any:
    from .geometry import resized_size

    height, width = x.canvas_size
    wanted = resized_size(height, width, size, max_size)
    if wanted == (height, width):
        return x
    data = plain(x)
    ratios = torch.tensor([wanted[1] / width, wanted[0] / height] * (data.shape[-1] // 2), device=data.device)
    _axes(x)
    return like(data.mul(ratios).to(data.dtype), x, canvas_size=wanted)


def _crop(x: Any, top: int, left: int, height: int, width: int) -> Any:
    return like(_clamped(_moved(x, -left, -top), x, (height, width)), x, canvas_size=(height, width))


def _center_crop(x: Any, size: Any) -> Any:
    from .geometry import pair

    height, width = pair(size)
    top, left = (round((have - want) / 2) for have, want in zip(x.canvas_size, (height, width)))
    return _crop(x, top, left, height, width)


def _resized_crop(
    x: Any, top: int, left: int, height: int, width: int, size: Any, interpolation: Any = None, antialias: Any = None
) -> Any:
    from .geometry import pair

    return _resize(_crop(x, top, left, height, width), pair(size))


def _flip(x: Any, axis: int) -> Any:
    data, *axes = _axes(x)
    out, length, at = data.clone(), x.canvas_size[1 - axis], axes[axis]
    if kind_of(x) == "KeyPoints":
        out[..., at[0]] = length - 1 - data[..., at[0]]
    elif x.format.name == "XYWH":
        out[..., axis] = length - (data[..., axis] + data[..., axis + 2])
    else:
        out[..., at] = length - data[..., at[::-1]]
    return like(out, x)


def _pad(x: Any, padding: Any, fill: Any = None, padding_mode: str = "constant") -> Any:
    from .geometry import borders

    if padding_mode != "constant":
        raise ValueError(f"padding_mode={padding_mode!r} creates more objects than there are boxes or points")
    left, top, right, bottom = borders(padding)
    size = x.canvas_size[0] + top + bottom, x.canvas_size[1] + left + right
    return like(_clamped(_moved(x, left, top), x, size), x, canvas_size=size)


_MOVES: dict[str, Callable] = {
    "resize": _resize,
    "crop": _crop,
    "center_crop": _center_crop,
    "resized_crop": _resized_crop,
    "horizontal_flip": lambda x: _flip(x, 0),
    "vertical_flip": lambda x: _flip(x, 1),
    "pad": _pad,
}
