# SPDX-License-Identifier: Apache-2.0
"""The optical flow engine of NVIDIA GPUs (Turing and newer), through the library that comes with the driver.

Two surfaces hold frames, one the vectors from the first frame's pixels to their positions in the second. Vectors are
pairs of 16-bit fixed-point numbers with 5 fractional bits, x first.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .driver import CudaError, Device
from .stream import Stream

_API = 2 << 4  # version 2.0
_SETUP = np.dtype(
    [(k, "u4") for k in ("width", "height", "grid", "hint_grid", "mode", "level", "hints", "costs")]
    + [("private", "u8"), ("disparity", "u4"), ("regions", "u4")]
)
_EXECUTION = np.dtype(
    [("first", "u8"), ("second", "u8"), ("hints", "u8"), ("forget", "u4"), ("padding", "u4"), ("private", "u8")]
    + [("padding2", "u4"), ("n_regions", "u4"), ("regions", "u8")]
)
_FLOW, _SURFACE_IN_MEMORY = 1, 2
_INPUT, _OUTPUT, _HINT = 1, 2, 3  # usages of surfaces
_GRAY, _RGBA, _PAIRS = 1, 3, 5  # formats of surfaces
_GRIDS, _HINT_GRIDS, _LEAST, _MOST = 0, 1, (5, 4), (7, 6)  # capability numbers; sizes are height, width
_P, _I = ctypes.c_void_p, ctypes.c_int
# The functions of the table that NvOFAPICreateInstanceCuda fills, in order; "": not used.
_FUNCTIONS: tuple[tuple[str, tuple], ...] = (
    ("create", (_P, _P)),
    ("set_up", (_P, _P)),
    ("make_surface", (_P, _P, _I, _P)),
    ("", ()),
    ("address", (_P,)),
    ("strides", (_P, _P)),
    ("use_streams", (_P, _P, _P)),
    ("execute", (_P, _P, _P)),
    ("destroy_surface", (_P,)),
    ("destroy", (_P,)),
    ("last_error", (_P, _P, _P)),
    ("capabilities", (_P, _I, _P, _P)),
)
_STATUS = {
    1: "this GPU has no optical flow engine",
    2: "this GPU's optical flow engine is not supported",
    3: "the device is gone",
    4: "invalid pointer",
    5: "invalid parameter",
    6: "calls in the wrong order",
    7: "the driver has another version of the interface",
    8: "out of memory",
    9: "not initialised",
    10: "not supported",
    11: "internal error",
}


class EngineMissing(CudaError):
    """The driver's library or the engine is missing."""


@cache
def library(path: str) -> dict[str, Any]:
    """The driver's functions; EngineMissing if it has none."""
    try:
        lib = ctypes.CDLL(path)
        make = lib.NvOFAPICreateInstanceCuda
    except (OSError, AttributeError) as e:
        raise EngineMissing(
            f"the driver's library for the optical flow engine was not found ({e}); it is part of NVIDIA's driver: in "
            "containers it is mounted if NVIDIA_DRIVER_CAPABILITIES has 'video' or 'all'"
        ) from None
    table = (_P * 64)()
    make.argtypes, make.restype = (ctypes.c_uint32, _P), _I
    if status := make(_API, table):
        raise EngineMissing(f"the driver refuses optical flow: {_STATUS.get(status, f'status {status}')}")
    found = {}
    for (name, arguments), address in zip(_FUNCTIONS, table):
        if name:
            result = ctypes.c_uint64 if name == "address" else _I
            found[name] = ctypes.CFUNCTYPE(result, *arguments)(address)
    return found


def path() -> str:
    return os.environ.get("PENSTOCK_OPTICAL_FLOW") or "libnvidia-opticalflow.so.1"


class Settings(NamedTuple):
    """`grid` x `grid` pixels share a vector; `hint_grid` is 0 without hints; `level` is 5 (slow), 10 or 20
    (fast). Frames are gray or of colours, with blue first if `reversed`."""

    grid: int
    hint_grid: int
    level: int
    gray: bool
    reversed: bool


class Surface(NamedTuple):
    handle: int
    address: int
    pitch: int  # bytes from row to row
    height: int
    width: int


class Engine:
    """The engine for frames of one size. Created inside `with device:`."""

    def __init__(self, device: Device):
        """Opens the engine without a size, to query its capabilities."""
        self._call = library(path())
        handle = _P()
        status = self._call["create"](device._context, ctypes.byref(handle))
        if status:
            raise EngineMissing(f"{device.name}: {_STATUS.get(status, f'status {status}')}")
        self._handle = handle.value
        self._surfaces: list[int] = []

    def set_up(self, height: int, width: int, s: Settings) -> None:
        """Creates the surfaces: `frames` (two), `vectors` and `hints`."""
        setup = np.zeros(1, _SETUP)
        setup["width"], setup["height"], setup["grid"], setup["level"] = width, height, s.grid, s.level
        setup["mode"], setup["hint_grid"], setup["hints"] = _FLOW, s.hint_grid or s.grid, s.hint_grid > 0
        self._check("set_up", setup.ctypes.data)
        self.frames = tuple(self._surface(height, width, _INPUT, _GRAY if s.gray else _RGBA) for _ in range(2))
        self.vectors = self._surface(-(-height // s.grid), -(-width // s.grid), _OUTPUT, _PAIRS)
        self.hints: Surface | None = None
        if s.hint_grid:
            self.hints = self._surface(-(-height // s.hint_grid), -(-width // s.hint_grid), _HINT, _PAIRS)

    def grids(self) -> tuple[list[int], list[int]]:
        """The supported grids for vectors and for hints."""
        return self._capability(_GRIDS), self._capability(_HINT_GRIDS)

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and largest frame sizes, each as height and width."""
        least, most = ([self._capability(c)[0] for c in of] for of in (_LEAST, _MOST))
        return np.array(least), np.array(most)

    def execute(self, stream: Stream, first: Surface, second: Surface, goes_on: bool) -> None:
        """Computes `vectors` in stream order. With `goes_on`, the previous vectors are used as a hint."""
        what = np.zeros(1, _EXECUTION)
        what["first"], what["second"], what["forget"] = first.handle, second.handle, not goes_on
        what["hints"] = self.hints.handle if self.hints else 0
        to = np.array([self.vectors.handle, 0, 0], "u8")
        self._check("use_streams", stream.handle, stream.handle)
        self._check("execute", what.ctypes.data, to.ctypes.data)
        stream.asked()

    def close(self) -> None:
        """Frees the surfaces and the engine. Call when the GPU is done."""
        for surface in self._surfaces:
            self._call["destroy_surface"](surface)
        self._surfaces.clear()
        if self._handle:
            self._call["destroy"](self._handle)
            self._handle = None

    def _surface(self, height: int, width: int, usage: int, format: int) -> Surface:
        handle, strides = _P(), np.zeros(7, "u4")  # x and y of three planes, number of planes
        wanted = np.array([width, height, usage, format], "u4")
        self._check("make_surface", wanted.ctypes.data, _SURFACE_IN_MEMORY, ctypes.byref(handle))
        assert handle.value is not None
        self._surfaces.append(handle.value)
        if self._call["strides"](handle, strides.ctypes.data):
            raise CudaError("optical flow: a surface has no strides")
        return Surface(handle.value, self._call["address"](handle), int(strides[0]), height, width)

    def _capability(self, number: int) -> list[int]:
        size = ctypes.c_uint32()
        self._check("capabilities", number, None, ctypes.byref(size))
        values = np.zeros(max(size.value, 1), "u4")
        self._check("capabilities", number, values.ctypes.data, ctypes.byref(size))
        return values[: size.value].tolist()

    def _check(self, name: str, *arguments: object) -> None:
        status = self._call[name](self._handle, *arguments)
        if not status:
            return
        text, size = ctypes.create_string_buffer(256), ctypes.c_uint32(256)
        self._call["last_error"](self._handle, text, ctypes.byref(size))
        more = text.value.decode(errors="replace").strip()
        raise CudaError(f"optical flow: {_STATUS.get(status, f'status {status}')}{f' ({more})' if more else ''}")
