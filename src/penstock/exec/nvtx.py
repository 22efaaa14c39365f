# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges for Nsight Systems and other tools, without the NVTX library: the tool's path is in the environment
variable NVTX_INJECTION64_PATH, and the tool fills tables of functions, as in the NVTX 3 header."""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any

_PATH = "NVTX_INJECTION64_PATH"
_VERSION = 3
# Tables that a tool can request: callbacks per module, and the NVTX version.
_CALLBACKS, _VERSION_INFO = 1, 3
_SIZES = {1: 16, 2: 9, 3: 15, 4: 7, 5: 16, 6: 7}  # functions per module; the first of each is unused
_DOMAINS = 5  # the module used here, and its functions
_PUSH, _POP, _CREATE = 4, 5, 12
_ASCII = 1  # message type

_P = ctypes.c_void_p
_Push = ctypes.CFUNCTYPE(ctypes.c_int, _P, _P)
_Pop = ctypes.CFUNCTYPE(ctypes.c_int, _P)
_Create = ctypes.CFUNCTYPE(_P, ctypes.c_char_p)
_GetTable = ctypes.CFUNCTYPE(_P, ctypes.c_uint32)
_GetFunctions = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_P), ctypes.POINTER(ctypes.c_uint))
_SetVersion = ctypes.CFUNCTYPE(None, ctypes.c_uint32)


class _Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("get_functions", _GetFunctions)]


class _VersionInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("set_version", _SetVersion),
    ]


class _Attributes(ctypes.Structure):
    """Attributes of a range; only the name is set."""

    _fields_ = [
        ("version", ctypes.c_uint16),
        ("size", ctypes.c_uint16),
        ("category", ctypes.c_uint32),
        ("color_type", ctypes.c_int32),
        ("color", ctypes.c_uint32),
        ("payload_type", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("payload", ctypes.c_uint64),
        ("message_type", ctypes.c_int32),
        ("message", ctypes.c_char_p),
    ]


class Nvtx:
    """A tool with the tables that it has filled. They live as long as the process, as the tool keeps pointers to
    them."""

    def __init__(self, path: str):
        """Raises OSError or AttributeError if there is no working tool."""
        # Functions filled in by the tool, and null-terminated tables of pointers to them.
        self._functions = {module: (_P * size)() for module, size in _SIZES.items()}
        self._tables = {module: (_P * (size + 1))() for module, size in _SIZES.items()}
        for module, functions in self._functions.items():
            for i in range(1, len(functions)):
                self._tables[module][i] = ctypes.addressof(functions) + i * ctypes.sizeof(_P)
        self._callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetFunctions(self._get_functions))
        self._version = _VersionInfo(ctypes.sizeof(_VersionInfo), _VERSION, 0, _SetVersion(lambda version: None))
        self._get_table = _GetTable(self._table)
        initialize = ctypes.CDLL(path).InitializeInjectionNvtx2
        initialize.argtypes, initialize.restype = [_GetTable], ctypes.c_int
        of_domains = self._functions[_DOMAINS]
        if not initialize(self._get_table) or not all(of_domains[i] for i in (_PUSH, _POP, _CREATE)):
            raise OSError(f"{path} takes no ranges")
        self._domain = _Create(of_domains[_CREATE] or 0)(b"penstock")
        self._push, self._pop = _Push(of_domains[_PUSH] or 0), _Pop(of_domains[_POP] or 0)
        self._attributes: dict[str, _Attributes] = {}  # by range name

    def push(self, name: str) -> None:
        """Begins a range of this thread."""
        attributes = self._attributes.get(name)
        if attributes is None:
            size = ctypes.sizeof(_Attributes)
            attributes = _Attributes(_VERSION, size, message_type=_ASCII, message=name.encode())
            self._attributes[name] = attributes
        self._push(self._domain, ctypes.addressof(attributes))

    def pop(self) -> None:
        """Ends the last range of this thread."""
        self._pop(self._domain)

    def _table(self, kind: int) -> int | None:
        table = {_CALLBACKS: self._callbacks, _VERSION_INFO: self._version}.get(kind)
        return None if table is None else ctypes.addressof(table)

    def _get_functions(self, module: int, table: Any, size: Any) -> int:
        if module not in self._tables:
            return 0
        if size:
            size[0] = _SIZES[module]
        if table:
            table[0] = ctypes.addressof(self._tables[module])
        return 1


def attached() -> Nvtx | None:
    """The tool attached to the process; None if there is none."""
    path = os.environ.get(_PATH)
    if not path:
        return None
    try:
        return Nvtx(path)
    except (OSError, AttributeError) as e:
        warnings.warn(f"no NVTX ranges, as {_PATH} names no tool that works: {e}", RuntimeWarning, stacklevel=2)
        return None
