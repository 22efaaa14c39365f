# SPDX-License-Identifier: Apache-2.0
"""Affine and perspective maps of pictures: images as Pillow maps them, tensors by PyTorch's `grid_sample`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image
from torch.nn.functional import grid_sample

from . import _bytes
from ._annotations import with_annotations
from .geometry import InterpolationMode, check_picture, get_size, name_of, pillow_fill, pillow_mode


def _inverse(
    center: Sequence[float], angle: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> list[float]:
    """Six numbers that take places of the output to places of the input: the inverse of shearing, turning and scaling
    around the center, and moving. Degrees, clockwise in a picture."""
    turn, shear_x, shear_y = (math.radians(v) for v in (angle, *shear))
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -(a * math.tan(shear_x) + math.sin(turn))
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = math.cos(turn) - c * math.tan(shear_x)
    rows = (d / scale, -b / scale), (-c / scale, a / scale)
    at = center[0] + translate[0], center[1] + translate[1]
    made: list[float] = []
    for (x, y), middle in zip(rows, center):
        made += [x, y, middle - x * at[0] - y * at[1]]
    return made


@with_annotations(mask={"interpolation": InterpolationMode.NEAREST})
def affine(
    picture: Any,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Any = InterpolationMode.NEAREST,
    fill: Any = None,
    center: Sequence[float] | None = None,
) -> Any:
    """Rotates by `angle` degrees, scales and shears around the `center` (x, y), and translates by `translate`
    pixels."""
    check_picture(picture, "affine")
    slants = [shear, 0.0] if isinstance(shear, (int, float)) else list(shear) * (2 // len(shear))
    if scale <= 0:
        raise ValueError(f"scale is positive; got {scale}")
    height, width = get_size(picture)
    name = name_of(interpolation)
    if isinstance(picture, Image.Image):
        middle = (width * 0.5, height * 0.5) if center is None else center
        matrix = _inverse(middle, angle, translate, scale, slants)
        return _transformed(picture, Image.Transform.AFFINE, matrix, name, fill)
    middle = (0.0, 0.0) if center is None else (center[0] - width * 0.5, center[1] - height * 0.5)
    matrix = _inverse(middle, angle, [float(t) for t in translate], scale, slants)
    return _sampled(picture, _affine_grid(picture, matrix, width, height), name, fill)


@with_annotations(mask={"interpolation": InterpolationMode.NEAREST})
def rotate(
    picture: Any,
    angle: float,
    interpolation: Any = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Any = None,
) -> Any:
    """Rotates by `angle` degrees, counter-clockwise; with `expand`, the output contains the whole rotated image."""
    check_picture(picture, "rotate")
    name = name_of(interpolation)
    if isinstance(picture, Image.Image):
        at = None if center is None else (center[0], center[1])
        color = pillow_fill(fill, picture)
        return picture.rotate(angle, pillow_mode(name), expand, at, fillcolor=color)
    angle = angle % 360
    height, width = picture.shape[-2:]
    quarters = int(angle // 90) if angle % 90 == 0 else None
    if center is None and quarters is not None and (quarters % 2 == 0 or expand or height == width):
        return torch.rot90(picture, quarters, (-2, -1)) if quarters else picture.clone()
    middle = (0.0, 0.0) if center is None else (center[0] - width * 0.5, center[1] - height * 0.5)
    matrix = _inverse(middle, -angle, (0.0, 0.0), 1.0, (0.0, 0.0))
    size = _expanded(matrix, width, height) if expand else (width, height)
    return _sampled(picture, _affine_grid(picture, matrix, *size), name, fill)


@with_annotations(mask={"interpolation": InterpolationMode.NEAREST})
def perspective(
    picture: Any,
    startpoints: Sequence[Sequence[float]] | None,
    endpoints: Sequence[Sequence[float]] | None,
    interpolation: Any = InterpolationMode.BILINEAR,
    fill: Any = None,
    coefficients: Sequence[float] | None = None,
) -> Any:
    """Applies the map from four `startpoints` to `endpoints`, or the one with eight `coefficients`."""
    check_picture(picture, "perspective")
    if coefficients is None:
        if startpoints is None or endpoints is None:
            raise ValueError("perspective takes startpoints and endpoints, or coefficients")
        coefficients = perspective_coefficients(startpoints, endpoints)
    if len(coefficients) != 8:
        raise ValueError(f"coefficients are eight numbers; got {len(coefficients)}")
    name = name_of(interpolation)
    if isinstance(picture, Image.Image):
        return _transformed(picture, Image.Transform.PERSPECTIVE, list(coefficients), name, fill)
    a, b, c, d, e, f, g, h = coefficients
    dtype = _float_type(picture)
    height, width = picture.shape[-2:]
    places = _places(width, height, 0.5, dtype, picture.device)
    over = torch.tensor([[[a, d], [b, e], [c, f]]], dtype=dtype, device=picture.device)
    over = over.div_(torch.tensor([0.5 * width, 0.5 * height], dtype=dtype, device=picture.device))
    under = torch.tensor([[[g, g], [h, h], [1.0, 1.0]]], dtype=dtype, device=picture.device)
    grid = places.bmm(over).div_(places.bmm(under)).sub_(1.0)
    return _sampled(picture, grid.view(1, height, width, 2), name, fill)


def perspective_coefficients(start: Sequence[Sequence[float]], end: Sequence[Sequence[float]]) -> list[float]:
    """Eight numbers that take places of the output to places of the input, from where four corners go."""
    if len(start) != 4 or len(end) != 4:
        raise ValueError(f"startpoints and endpoints are four corners each; got {len(start)} and {len(end)}")
    rows = []
    for (x, y), (u, v) in zip(end, start):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    matrix, known = torch.tensor(rows, dtype=torch.float64), torch.tensor(start, dtype=torch.float64).view(8)
    return torch.linalg.lstsq(matrix, known, driver="gels").solution.to(torch.float32).tolist()


def _transformed(image: Image.Image, how: Any, numbers: Sequence[float], name: str, fill: Any) -> Image.Image:
    return image.transform(image.size, how, numbers, pillow_mode(name), fillcolor=pillow_fill(fill, image))


def _float_type(x: torch.Tensor) -> torch.dtype:
    return x.dtype if x.is_floating_point() else torch.float32


def _places(width: int, height: int, first: float, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """(1, height * width, 3) of x, y and 1."""
    places = torch.ones(1, height, width, 3, dtype=dtype, device=device)
    places[..., 0] = torch.linspace(first, first + width - 1.0, steps=width, dtype=dtype, device=device)
    places[..., 1] = torch.linspace(first, first + height - 1.0, steps=height, dtype=dtype, device=device)[:, None]
    return places.view(1, -1, 3)


def _affine_grid(x: torch.Tensor, matrix: Sequence[float], width: int, height: int) -> torch.Tensor:
    """Where each pixel of the output lies in x, from -1 to 1. The origin is the middle of both."""
    dtype, device = _float_type(x), x.device
    places = torch.ones(1, height, width, 3, dtype=dtype, device=device)
    places[..., 0] = torch.linspace((1.0 - width) * 0.5, (width - 1.0) * 0.5, steps=width, device=device)
    places[..., 1] = torch.linspace((1.0 - height) * 0.5, (height - 1.0) * 0.5, steps=height, device=device)[:, None]
    half = torch.tensor([0.5 * x.shape[-1], 0.5 * x.shape[-2]], dtype=dtype, device=device)
    turned = torch.tensor(matrix, dtype=dtype, device=device).view(1, 2, 3).transpose(1, 2).div(half)
    return places.view(1, -1, 3).bmm(turned).view(1, height, width, 2)


def _expanded(matrix: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """Width and height that all of a turned picture fits into; a ten thousandth of a pixel is none."""
    half = torch.tensor([0.5 * width, 0.5 * height])
    corners = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]]) * half
    turned = torch.cat([corners, torch.ones(4, 1)], 1) @ torch.tensor(matrix).view(2, 3).T
    low, high = ((v + half).mul(1e4).trunc_().mul_(1e-4) for v in turned.aminmax(dim=0))
    size = high.ceil() - low.floor()
    return int(size[0]), int(size[1])


def _sampled(x: torch.Tensor, grid: torch.Tensor, name: str, fill: Any) -> torch.Tensor:
    """x at the places of a grid; `fill` (None: zero) where the grid leaves it."""
    if name not in ("nearest", "bilinear"):
        raise ValueError(f"tensors can be mapped by nearest and bilinear; got {name}")
    values = None if fill is None else [float(v) for v in (fill if isinstance(fill, (tuple, list)) else [fill])]
    if values and len(values) not in (1, x.shape[-3]):
        raise ValueError(f"fill has {len(values)} values, but the picture has {x.shape[-3]} channels")
    shape = (*x.shape[:-2], *grid.shape[1:3])
    if x.numel() == 0:
        return x.reshape(shape)
    fits = x.shape[-1] * x.shape[-2] < 2**31
    if name == "nearest" and x.dtype is torch.uint8 and x.device.type == "cpu" and fits:
        return _bytes.at_places(x, grid, torch.tensor(values or [0.0]).round_().to(torch.uint8))
    how = {"mode": name, "padding_mode": "zeros", "align_corners": False}
    four = x.reshape(-1, *x.shape[-3:])
    if values is None or len(four) > 1:
        four = four if x.dtype == grid.dtype else four.to(grid.dtype)
        sampled = grid_sample(four, grid.expand(len(four), -1, -1, -1), **how)
        there = None if values is None else grid_sample(torch.ones_like(four[:1, :1]), grid, **how)
    else:
        both = four.new_ones((1, four.shape[1] + 1, *four.shape[2:]), dtype=grid.dtype)
        both[:, :-1] = four
        both = grid_sample(both, grid, **how)
        sampled, there = both[:, :-1], both[:, -1:]
    if there is not None:  # how much of a pixel is there
        around = torch.tensor(values, dtype=grid.dtype, device=x.device).view(1, -1, 1, 1)
        if name == "nearest":
            sampled = torch.where(there < 0.5, around, sampled)
        elif values == [0.0]:
            sampled = sampled * there
        else:
            sampled = (sampled - around).mul_(there).add_(around)
    return (sampled if x.dtype == grid.dtype else sampled.round_().to(x.dtype)).reshape(shape)
