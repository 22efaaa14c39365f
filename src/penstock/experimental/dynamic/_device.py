# SPDX-License-Identifier: Apache-2.0
"""Devices of data and operators."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, overload

_local = threading.local()
_DLPACK_TYPES = {1: "cpu", 2: "gpu", 3: "cpu", 13: "gpu"}


def gpu_count() -> int:
    """Number of GPUs; 0 without a driver."""
    from ...gpu.driver import device_count

    try:
        return device_count()
    except (RuntimeError, OSError):
        return 0


class Device:
    """The CPU or one GPU.

    As a context manager, it sets the GPU of `device="gpu"` without a number and of `.gpu()` inside, in this thread.

    Parameters
    ----------
    name
        "cpu", "gpu" or "cuda", optionally with the index of a GPU: "gpu:1".
    device_id
        The index of the GPU. By default the current one.

    >>> from penstock.experimental import dynamic as ndd
    >>> str(ndd.Device("cpu")), ndd.Device("cpu") == ndd.device("cpu")
    ('cpu', True)
    """

    CPU: ClassVar[Device]
    device_type: str
    device_id: int | None

    def __init__(self, name: str, device_id: int | None = None):
        if not isinstance(name, str):
            raise TypeError(f"a device is named by a string such as 'cpu' or 'gpu:0'; got {name!r}")
        kind, colon, number = name.partition(":")
        if colon:
            if device_id is not None:
                raise ValueError(f"the number of the device is given twice: {name!r} and device_id={device_id}")
            if not number.isdigit():
                raise ValueError(f"{name!r} names no device; accepted: 'cpu', 'gpu', 'gpu:0', 'cuda:0', ...")
            device_id = int(number)
        kind = "gpu" if kind == "cuda" else kind
        if kind not in ("cpu", "gpu"):
            raise ValueError(f"there is no device type {kind!r}; accepted: 'cpu', 'gpu', 'cuda'")
        if kind == "cpu" and device_id is not None:
            raise ValueError(f"the CPU has no number; got device_id={device_id}")
        if kind == "gpu":
            if device_id is None:
                device_id = Device.default_device_id("gpu")
            elif not 0 <= device_id < gpu_count():
                raise ValueError(f"there is no GPU {device_id}: this machine has {gpu_count()}")
        self.device_type, self.device_id = kind, device_id

    @staticmethod
    def current() -> Device:
        """Returns the device of the innermost `with device:` of this thread; otherwise GPU 0, or the CPU without a
        GPU."""
        stack = getattr(_local, "stack", None)
        if stack:
            return stack[-1]
        return Device("gpu", 0) if gpu_count() else Device.CPU

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """The index of the default device; None for the CPU."""
        if device_type == "cpu":
            return None
        for device in reversed(getattr(_local, "stack", ())):
            if device.device_type == "gpu":
                return device.device_id
        if not gpu_count():
            raise RuntimeError("there is no GPU, or no driver for it, on this machine")
        return 0

    @staticmethod
    def from_dlpack(dlpack_device: Any) -> Device:
        """The device of an object with DLPack, or of the result of `__dlpack_device__`."""
        if hasattr(dlpack_device, "__dlpack_device__"):
            dlpack_device = dlpack_device.__dlpack_device__()
        kind, number = dlpack_device
        name = Device.type_from_dlpack(kind)
        return Device(name, number if name == "gpu" else None)

    @staticmethod
    def type_from_dlpack(dev_type: Any) -> str:
        """ "cpu" or "gpu" for a DLPack device type."""
        try:
            return _DLPACK_TYPES[int(dev_type)]
        except KeyError:
            raise ValueError(f"DLPack's device type {int(dev_type)} is neither a CPU nor a GPU of CUDA") from None

    def __enter__(self) -> Device:
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _local.stack.pop()

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __str__(self) -> str:
        return self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"

    def __repr__(self) -> str:
        number = "" if self.device_id is None else f", device_id={self.device_id}"
        return f"Device(device_type='{self.device_type}'{number})"


Device.CPU = Device("cpu")


@overload
def device(obj: None, id: None = None) -> None: ...
@overload
def device(obj: Any, id: int | None = None) -> Device: ...
def device(obj: Any, id: int | None = None) -> Device | None:
    """Returns a `Device` from a `Device`, its name, or a PyTorch device; None for None."""
    if isinstance(obj, str):
        return Device(obj, id)
    if id is not None:
        raise ValueError(f"the number {id} can only be given with the name of a device; got {obj!r}")
    if obj is None or isinstance(obj, Device):
        return obj
    if type(obj).__module__ == "torch" and hasattr(obj, "type"):
        return Device(obj.type if obj.index is None or obj.type == "cpu" else f"{obj.type}:{obj.index}")
    raise TypeError(f"a device is a Device, its name or a torch.device; got {type(obj).__name__}")
