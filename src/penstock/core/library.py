# SPDX-License-Identifier: Apache-2.0
"""Functions of a native library, with the signatures that the library exports (kernels/core/export.h)."""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any

_TYPES: dict[str, Any] = {
    "v": None,
    "P": ctypes.c_void_p,
    "O": ctypes.py_object,
    "b": ctypes.c_int8,
    "h": ctypes.c_int16,
    "i": ctypes.c_int32,
    "q": ctypes.c_int64,
    "B": ctypes.c_uint8,
    "H": ctypes.c_uint16,
    "I": ctypes.c_uint32,
    "Q": ctypes.c_uint64,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}


class Library:
    """The functions of a native library are its attributes. They get their signatures at first use: from the line
    EXPORT_SHORT or EXPORT_LONG after their definitions, which also says whether a call keeps or releases the GIL.
    Raises OSError if there is no such library."""

    def __init__(self, path: str):
        self.name = os.path.basename(path)
        self.others: list[Library] = []  # searched for functions that this library does not have
        self._dropping, self._keeping = ctypes.CDLL(path), ctypes.PyDLL(path)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._dropping, name):
            function = getattr(self._other(name), name)
            setattr(self, name, function)
            return function
        try:
            describe = self._dropping[f"{name}_signature"]
        except AttributeError:
            raise AttributeError(
                f"[internal error] Python can't call '{name}' of {self.name}: EXPORT_SHORT({name}) or "
                f"EXPORT_LONG({name}) is missing behind its definition"
            ) from None
        describe.restype = ctypes.c_char_p
        kind, result, *arguments = describe().decode()
        function = getattr(self._keeping if kind == "S" else self._dropping, name)
        function.restype, function.argtypes = _TYPES[result], [_TYPES[a] for a in arguments]
        setattr(self, name, function)
        return function

    def address(self, name: str) -> int:
        """The address of a function, which Python need not be able to call."""
        if not hasattr(self._dropping, name):
            return self._other(name).address(name)
        return ctypes.cast(self._dropping[name], ctypes.c_void_p).value or 0

    def _other(self, name: str) -> Library:
        for other in self.others:
            if hasattr(other._dropping, name):
                return other
        raise AttributeError(f"[internal error] {self.name} has no function '{name}'")

    def size_of_arguments(self, kernel: str) -> tuple[int, int]:
        """The size in bytes of a kernel's argument row and the kernel interface version, as compiled."""
        try:
            describe = self._dropping[f"{kernel}_built"]
        except AttributeError:
            raise ImportError(
                f"{self.name} has no kernel {kernel}: EXPORT_KERNEL({kernel}, ...) is missing, or the library was "
                "built for another version of penstock; build it again"
            ) from None
        describe.restype = ctypes.c_int64
        size, version = divmod(describe(), 1 << 16)
        return size, version

    def digest(self) -> str:
        """The digest of the sources it was built from; "" if it has none."""
        try:
            describe = self._dropping["kernels_digest"]
        except AttributeError:
            return ""
        describe.restype = ctypes.c_char_p
        return describe().decode()


# In the order of kernels/core/python.h.
_OF_PYTHON = (
    *("PyCapsule_New", "PyCapsule_IsValid", "PyCapsule_GetPointer", "PyCapsule_SetDestructor", "PyErr_NoMemory"),
    *("Py_IncRef", "Py_DecRef", "PyEval_SaveThread", "PyEval_RestoreThread"),
)


def tell_of_python(lib: Library) -> None:
    """Gives our library the addresses of the Python functions it calls, and registers its exit handler."""
    addresses = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _OF_PYTHON]
    lib.python_functions((ctypes.c_void_p * len(_OF_PYTHON))(*addresses))
    atexit.register(lib.python_ends)
