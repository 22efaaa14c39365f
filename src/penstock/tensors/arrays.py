# SPDX-License-Identifier: Apache-2.0
"""Conversion between NumPy arrays and those of other libraries."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..core.capsules import array_of, is_capsule
from ..core.errors import ArgumentTypeError


def as_numpy(object: Any) -> np.ndarray:
    """Converts any array to NumPy, without a copy if possible."""
    if isinstance(object, np.ndarray):
        return object
    if is_capsule(object):
        return array_of(object)
    if hasattr(object, "__array_interface__") or hasattr(object, "__array__"):
        return np.asarray(object)
    if hasattr(object, "__dlpack__"):
        return np.from_dlpack(object)
    try:
        return np.asarray(memoryview(object))
    except TypeError:
        raise ArgumentTypeError(
            f"expected an array (NumPy, DLPack, array interface or buffer); got {type(object).__name__}"
        ) from None


def pointer(target: Any) -> int:
    """The address given by an int, a ctypes pointer or object, or an array interface."""
    if isinstance(target, int):
        return target
    if hasattr(target, "__array_interface__"):
        return int(target.__array_interface__["data"][0])
    if isinstance(target, ctypes.c_void_p):
        return target.value or 0
    if isinstance(target, ctypes._Pointer):
        return ctypes.addressof(target.contents)
    return ctypes.addressof(target)


def copy_out(array: np.ndarray, target: Any) -> None:
    array = np.ascontiguousarray(array)
    ctypes.memmove(pointer(target), array.ctypes.data, array.nbytes)


def dlpack(array: np.ndarray, kwargs: dict[str, Any]) -> Any:
    """A DLPack capsule of an array. Read-only arrays are copied unless `copy=False`, as PyTorch ignores DLPack's
    read-only flag."""
    kwargs.pop("stream", None)
    if not array.flags.writeable and kwargs.get("copy") is not False:
        array = array.copy()
    try:
        return array.__dlpack__(**kwargs)
    except TypeError:  # NumPy before 2.1 does not support these arguments
        if (kwargs.get("dl_device") or (1, 0))[0] != 1:
            raise BufferError("this memory is on the CPU") from None
        return (array.copy() if kwargs.get("copy") else array).__dlpack__()
