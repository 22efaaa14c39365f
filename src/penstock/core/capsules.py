# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules that come without the tensor they are of."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_ON_GPU = (2, 13)  # DLPack's numbers of memory of CUDA's devices, and of managed memory


class _OfCapsule:
    """What NumPy takes for the tensor."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def is_capsule(object: Any) -> bool:
    return type(object).__name__ == "PyCapsule"


def is_spent(capsule: Any) -> bool:
    """Whether somebody has taken its tensor, which can be done once."""
    return "used_dltensor" in repr(capsule)


def array_of(capsule: Any) -> np.ndarray:
    """The array of a capsule, whose memory it shares. BufferError if it is on a GPU."""
    if is_spent(capsule):
        raise ValueError(
            "an invalid DLPack tensor capsule: somebody has taken its tensor already, which can be done only once; "
            "give a new capsule, or the array itself"
        )
    try:
        return np.from_dlpack(_OfCapsule(capsule))
    except (BufferError, RuntimeError) as e:
        if "device" in str(e):
            raise BufferError("the tensor of the DLPack capsule is not in host memory") from None
        raise ValueError(f"the DLPack capsule can't be used: {e}") from None


def is_on_gpu(capsule: Any) -> bool:
    """Whether the data of a capsule that is not spent lies on a GPU."""
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(capsule, b"dltensor")
    device_type = ctypes.c_int32.from_address(pointer + ctypes.sizeof(ctypes.c_void_p))  # behind the data's address
    return device_type.value in _ON_GPU
