# SPDX-License-Identifier: Apache-2.0
"""Converts Pillow images and PyTorch tensors to batches, and batches back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from ....core.batch import Batch, Borrowed, Spec

MODES = {"L": 1, "RGB": 3, "RGBA": 4}
_TYPES = {
    torch.from_numpy(np.empty(0, t)).dtype: np.dtype(t)
    for t in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?")
}


class Kind(NamedTuple):
    """The kind of images a graph is created for. `device` is -1 for the CPU, otherwise the index of a GPU."""

    form: str  # "image" or "tensor"
    layout: str
    channels: int
    dtype: np.dtype
    device: int


class Taken(NamedTuple):
    """Images as a batch. `lead`: a tensor's extents before the channels; None for a single image."""

    kind: Kind
    batch: Batch
    lead: tuple[int, ...] | None


def take(data: Any) -> Taken:
    """Converts an image or a batch of images, without a copy if possible. Raises TypeError or ValueError for anything
    else."""
    if isinstance(data, torch.Tensor):
        return _take_tensor(data)
    if isinstance(data, Image.Image):
        array = image_array(data)
        kind = Kind("image", "HWC", array.shape[2], array.dtype, -1)
        return Taken(kind, _lent(array[None], "HWC", data), None)
    raise TypeError(f"a picture has to be a PIL.Image.Image or a torch.Tensor, got {type(data).__name__}")


def image_array(image: Image.Image) -> np.ndarray:
    """The image as an array HWC. Raises ValueError for modes other than L, RGB and RGBA."""
    if image.mode not in MODES:
        raise ValueError(
            f"images of mode {image.mode} are not supported; supported: {', '.join(MODES)}. Convert it: "
            "image.convert('RGB')"
        )
    return np.asarray(image).reshape(image.height, image.width, -1)


def _lent(array: np.ndarray, layout: str, owner: Any) -> Batch:
    """A batch in foreign memory, which is not returned to the user."""
    batch = Batch.from_array(array, layout)
    batch.owners = (Borrowed((array, owner)),)
    return batch


def _take_tensor(tensor: torch.Tensor) -> Taken:
    if tensor.ndim < 3:
        raise TypeError(
            f"a tensor of pictures has at least three axes, (..., C, H, W); got one of shape {tuple(tensor.shape)}"
        )
    if tensor.requires_grad:
        raise ValueError("the tensor requires a gradient, which can't be computed through a transform; use .detach()")
    if tensor.dtype not in _TYPES:
        names = ", ".join(str(t).removeprefix("torch.") for t in _TYPES)
        raise TypeError(f"tensors of {tensor.dtype} are not supported; supported: {names}")
    lead = None if tensor.ndim == 3 else tuple(tensor.shape[:-3])
    channels, dtype = tensor.shape[-3], _TYPES[tensor.dtype]
    layout = "CHW"
    if not tensor.is_contiguous():
        moved = tensor.movedim(-3, -1)
        if moved.is_contiguous():  # channels last, or a view of an image
            tensor, layout = moved, "HWC"
        else:
            tensor = tensor.contiguous()
    n = 1 if lead is None else math.prod(lead)
    shape = (n, *tensor.shape[-3:])
    if tensor.device.type == "cpu":
        return Taken(
            Kind("tensor", layout, channels, dtype, -1), _lent(tensor.numpy().reshape(shape), layout, None), lead
        )
    if tensor.device.type != "cuda":
        raise TypeError(f"tensors on the CPU or a CUDA device are supported; this one is on {tensor.device}")
    number = tensor.device.index or 0
    return Taken(Kind("tensor", layout, channels, dtype, number), _on_gpu(tensor, shape, dtype, layout), lead)


def _on_gpu(tensor: torch.Tensor, shape: tuple[int, ...], dtype: np.dtype, layout: str) -> Batch:
    """A tensor on the GPU as a batch. Work on it waits for PyTorch's current stream."""
    from ....gpu.interchange import LEGACY_STREAM, borrowed
    from ....gpu.stream import ForeignStream
    from ....plugin.pytorch.torch_utils import _current_stream

    number, step = tensor.device.index or 0, math.prod(shape[1:]) * dtype.itemsize
    addresses = [tensor.data_ptr() + i * step for i in range(shape[0])]
    batch = borrowed(Spec.uniform(shape[0], shape[1:], dtype, layout), addresses, (Borrowed(tensor),), number)
    batch.stream = ForeignStream(batch.device, _current_stream(number) or LEGACY_STREAM)
    with batch.device:
        batch.ready = batch.stream.record()
    return batch


def give(batch: Batch, layout: str, form: str, lead: tuple[int, ...] | None) -> Any:
    """Converts a batch to the user's result."""
    if form == "image":
        images = [array_image(batch.sample(i)) for i in range(len(batch))]
        return images[0] if lead is None else images
    tensor = as_tensor(batch)
    if layout == "HWC":
        tensor = tensor.movedim(-1, -3)
    return tensor[0] if lead is None else tensor if len(lead) == 1 else tensor.reshape(*lead, *tensor.shape[1:])


def as_tensor(batch: Batch) -> torch.Tensor:
    """A tensor (n, ...) that shares the memory. Raises ValueError if the samples differ in shape."""
    if not batch.spec.is_dense:
        raise ValueError(
            f"the pictures of the batch have different sizes now, {batch.spec.shape.tolist()[:4]}..., and can't become "
            "one tensor; transform them one by one, or resize or crop them to one size at the end"
        )
    if batch.on_host:
        return torch.from_numpy(batch.array())
    from ....plugin.pytorch.torch_utils import on_gpu
    from ....tensors import TensorListGPU

    return on_gpu(TensorListGPU(batch), "the pictures")


def array_image(array: np.ndarray, mode: str | None = None) -> Image.Image:
    """An image from an array HWC of uint8, or of floats in [0, 1]."""
    if array.dtype == np.float32:
        array = np.clip(array * np.float32(255), 0, 255).astype("u1")
    if array.dtype != np.uint8:
        raise TypeError(f"an image is made of uint8 or float32, got {array.dtype.name}; convert it first")
    accepted = {1: ("L",), 2: ("LA",), 3: ("RGB", "HSV", "YCbCr", "LAB"), 4: ("RGBA", "CMYK", "RGBX")}
    channels = array.shape[2]
    if mode is None and channels not in MODES.values():
        raise ValueError(f"an image has 1, 3 or 4 channels (L, RGB, RGBA), got {channels}; other numbers need a mode")
    modes = accepted.get(channels, ())
    if mode is not None and mode not in modes:
        raise ValueError(f"mode={mode!r} does not fit {channels} channels; accepted: {', '.join(modes) or 'none'}")
    if 0 in array.shape:
        return Image.new(mode or modes[0], (array.shape[1], array.shape[0]))
    image = Image.fromarray(array[:, :, 0] if channels == 1 else array)
    if mode is None or mode == image.mode:
        return image
    return Image.frombytes(mode, image.size, np.ascontiguousarray(array).tobytes())


def apply_to_tensors(func: Callable[..., Any], inpt: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Implements `adjust_input`."""
    from ... import dynamic

    taken = take(inpt)
    kind = taken.kind
    if kind.form == "image":
        array = image_array(inpt)
        out = func(dynamic.as_tensor(array, layout="HWC"), *args, **kwargs)
    else:
        layout = kind.layout
        given = inpt if layout == "CHW" else inpt.movedim(-3, -1)
        if not given.is_contiguous():
            given = given.contiguous()
        if taken.lead is None:
            out = func(dynamic.as_tensor(given, layout=layout), *args, **kwargs)
        else:
            out = func(dynamic.as_batch(given.flatten(0, -4), layout=layout), *args, **kwargs)
    if isinstance(out, dynamic.Batch):
        tensor = dynamic.as_tensor(out).torch()
        tensor = tensor.unflatten(0, taken.lead) if taken.lead is not None and len(taken.lead) > 1 else tensor
    elif isinstance(out, dynamic.Tensor):
        tensor = out.torch()
    else:
        return out
    if kind.form == "image":
        return array_image(tensor.cpu().numpy())
    return tensor.movedim(-1, -3) if kind.layout == "HWC" else tensor
