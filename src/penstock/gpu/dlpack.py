# SPDX-License-Identifier: Apache-2.0
"""Exports GPU memory to other libraries, and imports theirs, by DLPack (https://dmlc.github.io/dlpack)."""

from __future__ import annotations

import atexit
import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dlpack_export

_CUDA = 2
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
_NAME, _USED = b"dltensor", b"used_dltensor"


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_api = ctypes.pythonapi
_api.PyCapsule_New.restype, _api.PyCapsule_New.argtypes = (
    ctypes.py_object,
    [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
)
_new_capsule = _api.PyCapsule_New
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", _api))

_given_out: dict[int, tuple] = {}  # (memory, owner) of exported tensors, by address, to keep them alive


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(managed: int) -> None:
    _given_out.pop(managed, None)


# A managed tensor followed by its extents, in one block. Packed by the layouts above, at a tenth of ctypes' cost.
_PACKED = struct.Struct("@PiiiBBHPPQPP")
assert _PACKED.size == ctypes.sizeof(_Managed)
_DELETER = ctypes.cast(_delete, ctypes.c_void_p).value
_EXTENTS = [struct.Struct(f"@{n}q") for n in range(16)]
_Start = ctypes.c_char
_TYPES: dict[np.dtype, tuple[int, int]] = {}


def capsule(address: int, shape: Sequence[int], dtype: np.dtype, device_id: int, owner: Any) -> Any:
    """A DLPack capsule of dense GPU memory. `owner`, any object, is kept until the consumer releases the tensor.
    Batches in pools use `dlpack_export.capsule`, which is faster."""
    ndim = len(shape)
    memory = bytearray(_PACKED.size + 8 * ndim)
    at = ctypes.addressof(_Start.from_buffer(memory))
    code, bits = _TYPES.get(dtype) or _TYPES.setdefault(dtype, (_CODES[dtype.kind], dtype.itemsize * 8))
    extents = at + _PACKED.size
    _PACKED.pack_into(memory, 0, address, _CUDA, device_id, ndim, code, bits, 1, extents, 0, 0, 0, _DELETER)
    _EXTENTS[ndim].pack_into(memory, _PACKED.size, *shape)
    _given_out[at] = (memory, owner)
    return _new_capsule(at, _NAME, dlpack_export.destructor())


# A C library function; called with an address it has no effect.
_NOTHING = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value


@atexit.register
def _keep() -> None:
    """At exit: frameworks may release their last tensors after Python has ended. Replaces the deleters by a function
    without effect, as some frameworks call them without a null check, and keeps the memory alive."""
    for at, (memory, _) in list(_given_out.items()):
        _Managed.from_address(at).deleter = _NOTHING
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))


class _Taken:
    """An imported tensor; its deleter is called when this object is unreferenced."""

    def __init__(self, managed: _Managed):
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._managed.deleter)(ctypes.addressof(self._managed))


def take(capsule: Any) -> tuple[int, tuple[int, ...], np.dtype, int, Any]:
    """Takes the tensor out of a capsule: address, shape, type, device number and owner. ValueError if it is not dense
    or not on a GPU."""
    if not _valid(id(capsule), _NAME):
        raise ValueError("the DLPack capsule was taken already")
    managed = _Managed.from_address(_get(id(capsule), _NAME))
    t = managed.tensor
    if t.device_type != _CUDA:
        raise ValueError("the tensor of this DLPack capsule is not on a GPU")
    shape = tuple(t.shape[d] for d in range(t.ndim))
    if t.strides and t.ndim:
        step = 1
        for d in reversed(range(t.ndim)):
            if shape[d] > 1 and t.strides[d] != step:
                raise ValueError(
                    f"a dense row-major tensor is needed; got strides {[t.strides[d] for d in range(t.ndim)]}"
                )
            step *= shape[d]
    kind = _KINDS.get(t.code)
    if kind is None or t.lanes != 1:
        raise ValueError(f"a DLPack type with code {t.code} and {t.lanes} lanes is not supported")
    dtype = np.dtype("?") if kind == "b" else np.dtype(f"{kind}{t.bits // 8}")
    _rename(id(capsule), _USED)
    return int(t.data or 0) + t.byte_offset, shape, dtype, t.device_id, _Taken(managed)
