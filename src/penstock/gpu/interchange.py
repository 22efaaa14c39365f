# SPDX-License-Identifier: Apache-2.0
"""Arrays and streams of other libraries on the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.batch import Spec
from . import dlpack
from .batch import DeviceBatch
from .borrowed import Borrowed
from .copies import PIECE, copy_on_device
from .driver import Device
from .stream import ForeignStream, Stream

LEGACY_STREAM = 1  # the CUDA driver's handle of the default stream


def stream_handle(stream: Any) -> int:
    """The handle of a stream: an integer, a ctypes pointer, or the stream of another library."""
    if isinstance(stream, int):
        return stream
    for name in ("cuda_stream", "ptr", "value", "handle"):
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    raise TypeError(f"a CUDA stream is an integer, a ctypes pointer or a stream of PyTorch or CuPy; got {stream!r}")


class Foreign(NamedTuple):
    """An array of another library, valid when the earlier work of `stream` is done."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    device_id: int
    owner: Any
    stream: int

    @property
    def ndim(self) -> int:
        return len(self.shape)


def foreign(object: Any, device_id: int, stream: Any = None, default: int = 0) -> Foreign:
    """Imports an array of another library. `stream` is where it is computed, for capsules and arrays that don't say;
    `default` is the GPU of arrays that don't say, if `device_id` is -1."""
    # DLPack has no number for the null stream, and DALI uses -1 for no stream in particular.
    behind = LEGACY_STREAM if stream is None else max(stream_handle(stream), LEGACY_STREAM)
    interface = getattr(object, "__cuda_array_interface__", None)
    # If the interface does not name a stream (PyTorch's), DLPack does.
    if interface is not None and ("stream" in interface or not hasattr(object, "__dlpack__")):
        dtype = np.dtype(interface["typestr"])
        if interface.get("strides") is not None:
            _check_dense(interface["shape"], interface["strides"], dtype.itemsize)
        number = device_id if device_id >= 0 else _device_of(object, default)
        behind = interface.get("stream") or behind
        return Foreign(interface["data"][0], tuple(interface["shape"]), dtype, number, object, behind)
    if hasattr(object, "__dlpack_device__") and object.__dlpack_device__()[0] != 2:
        raise TypeError(f"expected an array on the GPU; this {type(object).__name__} is not on a GPU")
    if hasattr(object, "__dlpack__"):
        object = object.__dlpack__(stream=behind)
    if type(object).__name__ == "PyCapsule":
        return Foreign(*dlpack.take(object), behind)
    raise TypeError(f"expected an array on the GPU (__cuda_array_interface__ or DLPack); got {type(object).__name__}")


def _check_dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> None:
    """Raises ValueError for an array that is not dense and row-major; strides of axes with one element are ignored."""
    dense = [itemsize * math.prod(shape[d + 1 :]) for d in range(len(shape))]
    if 0 not in shape and any(n > 1 and a != b for n, a, b in zip(shape, strides, dense)):
        raise ValueError(f"a dense row-major array is needed; got strides {tuple(strides)}, not {tuple(dense)}")


def _device_of(object: Any, default: int) -> int:
    """The number of the GPU that has an array of PyTorch, CuPy or penstock."""
    device = getattr(object, "device", None)
    for number in (getattr(device, "index", None), getattr(device, "id", None), getattr(object, "device_id", None)):
        number = number() if callable(number) else number
        if isinstance(number, int):
            return number
    return default


class LentSample:
    """Exposes a sample to other libraries as an array, valid on the stream that it is lent on."""

    def __init__(self, batch: DeviceBatch, i: int):
        self.batch, self.address, self.shape = batch, int(batch.rows["data"][i]), tuple(batch.spec.stored[i].tolist())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address = self.address if 0 not in self.shape else 0
        return {"data": (address, False), "shape": self.shape, "typestr": self.batch.spec.dtype.str, "version": 3}

    def __dlpack__(self, **kwargs: Any) -> Any:
        b = self.batch
        return dlpack.capsule(self.address, self.shape, b.spec.dtype, b.device.id, b)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.batch.device.id)


def borrowed(
    spec: Spec, addresses: list[int], owners: tuple, device_id: int, stream: int = LEGACY_STREAM
) -> DeviceBatch:
    """A batch of memory with other owners, valid when the earlier work of `stream` is done."""
    rows = spec.packed()
    rows["data"] = addresses
    batch = DeviceBatch(spec, rows, owners)
    batch.device = Device.get(device_id)
    batch.stream = ForeignStream(batch.device, stream)
    with batch.device:
        batch.ready = batch.stream.record()
    return batch


def on_host(object: Any, stream: Any = None) -> np.ndarray:
    """Copies an array computed on `stream` to pinned host memory."""
    return downloaded(foreign(object, -1, stream))


def downloaded(found: Foreign) -> np.ndarray:
    """Copies an array to pinned host memory."""
    spec = Spec.uniform(1, found.shape, found.dtype)
    return borrowed(spec, [found.address], (found.owner,), found.device_id, found.stream).download().sample(0)


def taken(result: Any, layout_of: Callable[[tuple[int, ...]], str], stream: Stream) -> DeviceBatch:
    """A batch of another library's array (n, ...) on the GPU, without a copy; `stream` waits for the array.

    `layout_of` checks its shape and returns the layout of its samples."""
    if hasattr(result, "__dlpack__"):
        if getattr(result, "__dlpack_device__", lambda: (2, 0))()[0] != 2:
            raise TypeError(f"the {type(result).__name__} is not on a GPU")
        result = result.__dlpack__(stream=stream.handle)
        stream.asked()
    if type(result).__name__ != "PyCapsule":
        raise TypeError(f"it has to be an array on the GPU that speaks DLPack; got {type(result).__name__}")
    address, shape, dtype, number, owner = dlpack.take(result)
    if number != stream.device.id:
        raise ValueError(f"the array is on GPU {number}; the pipeline uses GPU {stream.device.id}")
    spec = Spec.uniform(shape[0] if shape else 0, shape[1:], dtype, layout_of(shape))
    rows = spec.packed()
    rows["data"] = address + int(np.prod(shape[1:])) * dtype.itemsize * np.arange(shape[0], dtype="u8")
    batch = DeviceBatch(spec, rows, (Borrowed(owner, stream),))
    batch.device, batch.stream, batch.ready = stream.device, stream, None
    return batch


def is_packed(batch: DeviceBatch) -> bool:
    """Whether samples of one shape are contiguous."""
    data = batch.rows["data"]
    step = int(batch.spec.volumes()[0]) * batch.spec.dtype.itemsize if len(data) else 0
    return bool((data == data[:1] + step * np.arange(len(data), dtype="u8")).all())


def copy_out(batch: DeviceBatch, ptr: Any, cuda_stream: Any, non_blocking: bool) -> None:
    """Copies all samples contiguously to an address or an array on the same GPU."""
    address = getattr(ptr, "value", ptr)
    if not isinstance(address, int):
        address = foreign(ptr, batch.device.id).address
    with batch.device:
        stream = (
            Stream(batch.device) if cuda_stream is None else ForeignStream(batch.device, stream_handle(cuda_stream))
        )
        batch.used_on(stream)
        nbytes = batch.spec.volumes() * batch.spec.dtype.itemsize
        if is_packed(batch):
            stream.copy(address, int(batch.rows["data"][0]), int(nbytes.sum()))
        else:
            pieces = np.empty(len(nbytes), PIECE)
            pieces["from"], pieces["n"] = batch.rows["data"], nbytes
            pieces["to"] = address + np.cumsum(nbytes, dtype="u8") - pieces["n"]
            copy_on_device(pieces, stream)
        if not non_blocking or cuda_stream is None:
            stream.synchronize()
