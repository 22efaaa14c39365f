# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules passed without the tensor object they belong to."""

from __future__ import annotations

import ctypes
import datetime
from typing import Any

import numpy as np

# DLDeviceType values: host and pinned host memory; CUDA devices and managed memory.
_ON_HOST, _ON_GPU = (1, 3), (2, 13)
# Offset of the device type in a managed tensor: after the data address. Versioned tensors have 32 bytes before it.
_DEVICE_AT = {b"dltensor": 8, b"dltensor_versioned": 40}
_Capsule = type(datetime.datetime_CAPI)
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _OfCapsule:
    """A wrapper that implements the DLPack protocol for np.from_dlpack."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def is_capsule(object: Any) -> bool:
    return type(object) is _Capsule


def is_spent(capsule: Any) -> bool:
    """Whether its tensor has been consumed; that is possible once."""
    return _name_of(capsule) in (b"used_dltensor", b"used_dltensor_versioned")


def array_of(capsule: Any) -> np.ndarray:
    """An array that shares the capsule's memory. BufferError if that is on a GPU."""
    if is_spent(capsule):
        raise ValueError(
            "an invalid DLPack tensor capsule: somebody has taken its tensor already, which can be done only once; "
            "give a new capsule, or the array itself"
        )
    if _device_type(capsule) not in _ON_HOST:
        raise BufferError("the tensor of the DLPack capsule is not in host memory")
    try:
        return np.from_dlpack(_OfCapsule(capsule))
    except (BufferError, RuntimeError) as e:
        raise ValueError(f"the DLPack capsule can't be used: {e}") from None


def is_on_gpu(capsule: Any) -> bool:
    """Whether the data is on a GPU. Requires a capsule that is not spent."""
    return _device_type(capsule) in _ON_GPU


def _device_type(capsule: Any) -> int:
    name = _name_of(capsule)
    if name not in _DEVICE_AT:
        raise ValueError(f"the capsule is called {name!r}; one of a DLPack tensor is called 'dltensor'")
    return ctypes.c_int32.from_address(_pointer_of(capsule, name) + _DEVICE_AT[name]).value
