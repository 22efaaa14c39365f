# SPDX-License-Identifier: Apache-2.0
"""Pictures of bytes between two transforms: views of memory, on which native code runs."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import torch
from PIL import Image

from ..core.kernels import library

PILLOW, TORCH = 1, 2  # ResampleRule of kernels/resample/resample.h
FILTERS = {"nearest": 0, "bilinear": 1, "bicubic": 2, "lanczos": 3, "box": 6, "nearest-exact": 7}


class Picture:
    """`pixels` are uint8 (..., C, H, W) with any strides; `mode` is that of the image of Pillow they came from, None
    for a tensor. A resize may be pending: then `pixels` are its input."""

    __slots__ = ("mode", "owned", "pending", "pixels")

    def __init__(self, pixels: np.ndarray, mode: str | None, pending: tuple | None = None, owned: bool = False):
        self.pixels, self.mode, self.pending = pixels, mode, pending
        self.owned = owned  # the memory is nobody else's

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.pending[0] if self.pending else self.pixels.shape[-2:]

    def resized(self, size: tuple[int, int], mode: str, antialias: bool) -> Picture:
        done = self.done()
        return done if done.size == size else Picture(done.pixels, self.mode, (size, FILTERS[mode], antialias))

    def cropped(self, top: int, left: int, height: int, width: int) -> Picture:
        """The window has to lie inside."""
        if self.pending:
            return Picture(_resize(self, top, left, height, width), self.mode, owned=True)
        return Picture(self.pixels[..., top : top + height, left : left + width], self.mode, owned=self.owned)

    def flipped(self, axis: int) -> Picture:
        done = self.done()
        pixels = done.pixels[..., ::-1] if axis == -1 else done.pixels[..., ::-1, :]
        return Picture(pixels, self.mode, owned=done.owned)

    def done(self) -> Picture:
        return Picture(_resize(self, 0, 0, *self.pending[0]), self.mode, owned=True) if self.pending else self

    def floats(self, scale: float, divisor: float, mean: np.ndarray, deviation: np.ndarray) -> torch.Tensor:
        """(x * scale / divisor - mean) / deviation, channels first; `mean` and `deviation` are float32, per channel."""
        where, shape, alive = self._memory()
        out = torch.empty(shape)
        numbers = (scale, divisor, mean.ctypes.data, deviation.ctypes.data)
        library().pixels_to_float(*where, *numbers, out.data_ptr())
        del alive
        return out

    def tensor(self) -> torch.Tensor:
        done = self.done()
        if done.owned and done.pixels.flags.c_contiguous:
            return torch.from_numpy(done.pixels)
        where, shape, alive = done._memory()
        out = torch.empty(shape, dtype=torch.uint8)
        library().picture_planes(*where, out.data_ptr())
        del alive
        return out

    def _memory(self) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
        """As native code takes pixels: address, pictures, channels, height, width, and where there are steps between
        them; the shape; and what has to live until then."""
        x = self.done().pixels
        shape, lead, n = x.shape, x.shape[:-3], 1
        if len(lead) > 1:
            x = x.reshape(-1, *shape[-3:])
        for extent in lead:
            n *= extent
        steps = (ctypes.c_int64 * 4)(*(x.strides if x.ndim == 4 else (0, *x.strides)))
        return (x.ctypes.data, n, *shape[-3:], ctypes.addressof(steps)), shape, (x, steps)

    def image(self) -> Image.Image:
        pixels = self.done().pixels
        if self.mode == "L":
            return Image.fromarray(np.ascontiguousarray(pixels[0]))
        _, height, width = pixels.shape
        if pixels.strides == (1, 4 * width, 4):  # as Pillow stores it
            four = np.lib.stride_tricks.as_strided(pixels, (height, width, 4), (4 * width, 4, 1))
            return Image.frombytes("RGB", (width, height), four, "raw", "RGBX")
        return Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))

    def given_back(self) -> torch.Tensor | Image.Image:
        """As what it came."""
        return self.tensor() if self.mode is None else self.image()


def _resize(p: Picture, top: int, left: int, height: int, width: int) -> np.ndarray:
    assert p.pending is not None
    (full_height, full_width), number, antialias = p.pending
    x = p.pixels
    lead, (channels, in_height, in_width) = x.shape[:-3], x.shape[-3:]
    if len(lead) > 1:
        x = x.reshape(-1, *x.shape[-3:])
    images = len(x) if x.ndim == 4 else 1
    step, pitch, pixel = x.strides[-3:]
    if not (step == 1 and pixel in (3, 4) and channels == 3 and pitch > 0) and not (
        pixel == 1 and pitch > 0 and (x.ndim == 3 or x.strides[0] == channels * step)
    ):
        x = np.ascontiguousarray(x)
        step, pitch, pixel = x.strides[-3:]
    interleaved = step == 1 and channels > 1 and pixel > 1
    if interleaved:
        made = np.empty((images, height, width, pixel), np.uint8)
        out = made[..., :channels].transpose(0, 3, 1, 2)
        n, apart, each = images, x.strides[0] if x.ndim == 4 else 0, pixel
    else:
        out = made = np.empty((images, channels, height, width), np.uint8)
        n, apart, each = images * channels, step, 1
    if out.size and x.size:
        rule = TORCH if p.mode is None else PILLOW
        failed = library().resize_exactly(
            *(x.ctypes.data, n, apart, pitch, each, in_height, in_width, made.ctypes.data, full_height, full_width),
            *(top, left, height, width, rule, number, antialias),
        )
        if failed:
            raise MemoryError(f"resizing a picture of {in_height} x {in_width} to {full_height} x {full_width}")
    return out.reshape(*lead, channels, height, width) if len(lead) != 1 else out


class _ArrowArray(ctypes.Structure):
    """The C structure of Arrow's data interface, as far as it is read."""


_ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
]
_address_of = ctypes.pythonapi.PyCapsule_GetPointer
_address_of.restype, _address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Lent:
    """Memory of an image of Pillow, which lives as long as this does."""

    def __init__(self, capsule: Any, address: int, shape: tuple[int, ...]):
        self._capsule = capsule
        self.__array_interface__ = {"data": (address, True), "shape": shape, "typestr": "|u1", "version": 3}


def of_image(image: Image.Image) -> Picture | None:
    """A view of an image, where that is possible; None for modes other than L and RGB."""
    if image.mode not in ("RGB", "L") or not pillow_is_known():
        return None
    width, height = image.size
    if not width or not height:
        return None
    try:
        _, capsule = image.__arrow_c_array__()
    except (AttributeError, ValueError):  # Pillow before 12, or an image in several blocks of memory
        array = np.asarray(image)
        return Picture(array[None] if array.ndim == 2 else array.transpose(2, 0, 1), image.mode)
    arrow = _ArrowArray.from_address(_address_of(capsule, b"arrow_array"))
    if image.mode == "L":
        return Picture(np.asarray(_Lent(capsule, arrow.buffers[1], (1, height, width))), "L")
    four = np.asarray(_Lent(capsule, arrow.children[0].contents.buffers[1], (height, width, 4)))
    return Picture(four[..., :3].transpose(2, 0, 1), "RGB")


def of_tensor(tensor: torch.Tensor) -> Picture | None:
    """A view of a tensor of bytes on the CPU; None for others."""
    if tensor.dtype is not torch.uint8 or tensor.device.type != "cpu" or tensor.ndim < 3 or tensor.requires_grad:
        return None
    return Picture(tensor.numpy(), None)


@cache
def pillow_is_known() -> bool:
    """Whether this version of Pillow takes rows and columns in the order that the kernel knows (since Pillow 13)."""
    x = np.random.default_rng(0).integers(0, 256, (1, 40, 20), dtype=np.uint8)
    ours = Picture(x, "L").resized((9, 23), "bicubic", True).done().pixels[0]
    return bool((np.asarray(Image.fromarray(x[0]).resize((23, 9), Image.Resampling.BICUBIC)) == ours).all())
