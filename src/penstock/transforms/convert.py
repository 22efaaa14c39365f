# SPDX-License-Identifier: Apache-2.0
"""Transforms that convert images, tensors, and their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from ._picture import Picture
from ._transform import Transform
from .functional import convert as F
from .functional._annotations import image_beside, is_picture, kind_of, like, plain


class _ForImages(Transform):
    """Base of those that change images of Pillow, and arrays, and leave tensors."""

    moves, views = False, True
    accepted: tuple[type, ...] = (Image.Image, Picture)

    def forward(self, *inputs: Any) -> Any:
        x = inputs if len(inputs) > 1 else inputs[0]
        if isinstance(x, self.accepted):
            return self.transform(x, {})
        if isinstance(x, torch.Tensor):
            return x
        flat, form = tree_flatten(x)
        annotation = next((v for v in flat if kind_of(v)), None)
        for i, v in enumerate(flat):
            if isinstance(v, self.accepted):
                flat[i] = self.transform(v, {})
                if annotation is not None and isinstance(flat[i], torch.Tensor) and type(self) is ToImage:
                    flat[i] = image_beside(annotation, flat[i])
        return tree_unflatten(flat, form)


class PILToTensor(_ForImages):
    """Converts images to tensors (C, H, W) with the same values."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt if isinstance(inpt, Picture) and inpt.mode is None else F.pil_to_tensor(inpt)


class ToImage(_ForImages):
    """Converts images and arrays (H, W, C) to tensors (C, H, W): plain ones, or `Image` of `torchvision.tv_tensors` if
    the sample also has its masks, boxes or key points."""

    accepted = (Image.Image, Picture, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt if isinstance(inpt, Picture) and inpt.mode is None else F.to_image(inpt)


class ToTensor(_ForImages):
    """Converts images and arrays (H, W, C) to tensors (C, H, W); bytes are divided by 255."""

    accepted = (Image.Image, Picture, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt if isinstance(inpt, Picture) and inpt.mode is None else F.to_tensor(inpt)


class ToPureTensor(Transform):
    """Converts tensors of `torchvision.tv_tensors` to plain ones."""

    views, reads = True, False

    def forward(self, *inputs: Any) -> Any:
        x = inputs if len(inputs) > 1 else inputs[0]
        return x if isinstance(x, Picture) else tree_map(lambda v: plain(v) if kind_of(v) else v, x)


class ToPILImage(Transform):
    """Converts tensors (C, H, W) and arrays (H, W, C) to images."""

    moves = False

    def __init__(self, mode: str | None = None):
        super().__init__()
        self.mode = mode

    def forward(self, *inputs: Any) -> Any:
        x = inputs if len(inputs) > 1 else inputs[0]
        return F.to_pil_image(x, self.mode) if isinstance(x, np.ndarray) else super().forward(x)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt if isinstance(inpt, Image.Image) else F.to_pil_image(inpt, self.mode)


class ToDtype(Transform):
    """Converts the type; with `scale`, values are scaled so that white stays white, and floats are in [0, 1]."""

    moves = False

    def __init__(self, dtype: Any, scale: bool = False):
        super().__init__()
        self._by_class: dict = {}
        if isinstance(dtype, dict):
            self._by_class = {k: v for k, v in dtype.items() if isinstance(k, type)}
            found = [
                v for k, v in dtype.items() if k in (torch.Tensor, "others") or getattr(k, "__name__", "") == "Image"
            ]
            if not found:
                raise ValueError("dtype as a dictionary needs torch.Tensor or 'others' among its keys")
            dtype = found[0]
        if dtype is not None and not isinstance(dtype, torch.dtype):
            raise ValueError(f"dtype takes a torch.dtype; got {dtype!r}")
        self.dtype, self.scale = dtype, scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        given = isinstance(inpt, (torch.Tensor, Picture)) and self.dtype is not None
        return F.to_dtype(inpt, self.dtype, self.scale) if given else inpt

    def _of_sample(self, sample: Any) -> Any:
        sample = super()._of_sample(sample)
        if not self._by_class:
            return sample

        def annotation(x: Any) -> Any:
            dtype = self._by_class.get(type(x))
            return x if dtype is None or not kind_of(x) or is_picture(x) else like(plain(x).to(dtype), x)

        return tree_map(annotation, sample)


class ConvertImageDtype(ToDtype):
    """Converts the type; values are scaled so that white stays white."""

    def __init__(self, dtype: torch.dtype = torch.float32):
        super().__init__(dtype, scale=True)


class Normalize(Transform):
    """Computes (x - mean) / std for each channel of a float tensor."""

    moves = False

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
        super().__init__()
        if any(v == 0 for v in std):
            raise ValueError(f"std={list(std)} has a zero, which can't be divided by")
        self.mean, self.std, self.inplace = list(mean), list(std), inplace
        self._columns: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, torch.Tensor) and inpt.is_floating_point() and inpt.ndim >= 3:
            kind = (inpt.dtype, inpt.device)
            if kind not in self._columns:
                self._columns[kind] = tuple(  # type: ignore[assignment]
                    torch.as_tensor(v, dtype=inpt.dtype, device=inpt.device).view(-1, 1, 1)
                    for v in (self.mean, self.std)
                )
            mean, std = self._columns[kind]
            return (inpt.sub_(mean) if self.inplace else inpt.sub(mean)).div_(std)
        return F.normalize(inpt, self.mean, self.std, self.inplace)


class _ToFloats(Transform):
    """Several of the transforms above, of bytes, at once: native code reads the pixels where they lie."""

    views = True

    def __init__(self, steps: Sequence[Transform], divides: bool, normalize: Normalize | None):
        super().__init__()
        self.steps = steps
        self._divides = divides  # by 255, as ToTensor, instead of multiplying by 1 / 255, as ToDtype
        self._last = normalize
        self._constants = None if normalize is None else (tuple(normalize.mean), tuple(normalize.std))

    def forward(self, *inputs: Any) -> Any:
        x = inputs[0] if len(inputs) == 1 else inputs
        if isinstance(x, Picture) and not (self._divides and x.mode is None):
            channels = x.pixels.shape[-3]
            mean, std = self._constants or ((0.0,), (1.0,))
            if len(mean) in (1, channels) and len(std) in (1, channels):
                return F.scaled_and_normalized(x, mean, std, self._divides)
        if isinstance(x, Picture):
            x = x.given_back()
        for step in self.steps:
            x = step(x)
        return x


def join(transforms: list[Callable]) -> list[Callable]:
    """Puts conversions of bytes to floats together, with the Normalize behind them."""
    steps: list[Callable] = []
    i = 0
    while i < len(transforms):
        begin = i
        while i < len(transforms) and type(transforms[i]) in (PILToTensor, ToImage, ToPureTensor):
            i += 1
        step = transforms[i] if i < len(transforms) else None
        floats = isinstance(step, ToDtype) and step.scale and step.dtype is torch.float32
        if type(step) is ToTensor and begin == i or floats:
            i += 1
            last = transforms[i] if i < len(transforms) else None
            normalize = last if type(last) is Normalize else None
            i += normalize is not None
            steps.append(_ToFloats(transforms[begin:i], type(step) is ToTensor, normalize))  # type: ignore[arg-type]
        elif i > begin:
            steps += transforms[begin:i]
        else:
            steps.append(transforms[i])
            i += 1
    return steps
