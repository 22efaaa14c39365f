# SPDX-License-Identifier: Apache-2.0
"""GPU streams."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, overload

_local = threading.local()
_default: dict[int, Stream] = {}  # by index of the GPU


class _CreateNew:
    def __repr__(self) -> str:
        return "Stream.create_new"


class Stream:
    """A stream of GPU work: a new one, or that of another library.

    Parameters
    ----------
    stream
        An object with `__cuda_stream__`, a stream of PyTorch or CuPy, a handle as an integer, or `Stream.create_new`,
        the default.
    device_id
        The GPU. By default the current one.
    """

    create_new: ClassVar[Any] = _CreateNew()

    def __init__(self, *, stream: Any = create_new, device_id: int | None = None):
        from ...gpu.driver import Device as Gpu
        from ...gpu.interchange import stream_handle
        from ...gpu.stream import ForeignStream
        from ...gpu.stream import Stream as OfGpu
        from ._device import Device

        if device_id is None:
            theirs = getattr(getattr(stream, "device", None), "index", None)
            device_id = theirs if isinstance(theirs, int) else Device.default_device_id("gpu")
        assert device_id is not None
        gpu = Gpu.get(device_id)
        with gpu:
            if stream is Stream.create_new:
                self._stream: Any = OfGpu(gpu)
            elif isinstance(stream, Stream):
                self._stream = stream._stream
            else:
                about = getattr(stream, "__cuda_stream__", None)
                number = about()[1] if about is not None else stream_handle(stream)
                self._stream = ForeignStream(gpu, number)
        self._of, self._device_id = stream, device_id

    @property
    def handle(self) -> int:
        """The CUDA handle."""
        return self._stream.handle or 0

    @property
    def device_id(self) -> int:
        """The index of the GPU."""
        return self._device_id

    def synchronize(self) -> None:
        """Waits until all work of the stream is complete."""
        from ...gpu.stream import Stream as OfGpu

        with self._stream.device:
            OfGpu.synchronize(self._stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.handle)

    def __eq__(self, value: Any) -> bool:
        if not isinstance(value, Stream):
            return NotImplemented
        return (self.handle, self.device_id) == (value.handle, value.device_id)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Stream(handle={self.handle:#x}, device_id={self.device_id})"


@overload
def stream(*, stream: None, device_id: int | None = None) -> None: ...
@overload
def stream(*, stream: Any = Stream.create_new, device_id: int | None = None) -> Stream: ...
def stream(*, stream: Any = Stream.create_new, device_id: int | None = None) -> Stream | None:
    """Returns a new `Stream`, or one that wraps another library's; None for None."""
    if stream is None:
        return None
    made = stream if isinstance(stream, Stream) else Stream(stream=stream, device_id=device_id)
    if device_id is not None and made.device_id != device_id:
        raise ValueError(f"the stream is one of GPU {made.device_id}, not {device_id}")
    return made


def get_default_stream(device_id: int | None = None) -> Stream | None:
    """Returns the stream of a GPU (by default the current one) for threads that have set none; None if there is
    none."""
    return _default.get(_number(device_id)) if _default else None


def set_default_stream(cuda_stream: Any, device_id: int | None = None) -> None:
    """Sets the stream of a GPU for threads that have set none; None removes it."""
    wrapped = stream(stream=cuda_stream, device_id=device_id)
    if wrapped is None:
        _default.pop(_number(device_id), None)
    else:
        _default[wrapped.device_id] = wrapped


def get_current_stream(device_id: int | None = None) -> Stream | None:
    """Returns this thread's stream of a GPU (by default the current one), or the default stream."""
    mine = getattr(_local, "streams", None)
    found = mine.get(_number(device_id)) if mine else None
    return get_default_stream(device_id) if found is None else found


def set_current_stream(cuda_stream: Any, device_id: int | None = None) -> None:
    """Sets this thread's stream of a GPU; None: the default stream."""
    if not hasattr(_local, "streams"):
        _local.streams = {}
    wrapped = stream(stream=cuda_stream, device_id=device_id)
    if wrapped is None:
        _local.streams.pop(_number(device_id), None)
    else:
        _local.streams[wrapped.device_id] = wrapped


def _number(device_id: int | None) -> int:
    from ._device import Device, gpu_count

    if device_id is not None:
        return device_id
    return (Device.default_device_id("gpu") if gpu_count() else None) or 0
