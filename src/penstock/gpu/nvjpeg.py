# SPDX-License-Identifier: Apache-2.0
"""The JPEG engine of NVIDIA GPUs (A100, H100 and newer data-centre chips), through nvJPEG's batched decoder."""

from __future__ import annotations

import ctypes
import glob
import os
import sys
import threading
from collections.abc import Sequence
from functools import cache

import numpy as np

from ..core.rows import address
from .driver import CudaError, Device
from .stream import Stream

# Values of nvjpegBackend_t and nvjpegOutputFormat_t.
_HARDWARE = 3
GRAY, RGB, BGR = 2, 5, 6  # one plane; interleaved
_P, _I = ctypes.c_void_p, ctypes.c_int
_FUNCTIONS = {
    "nvjpegCreateEx": (_I, _P, _P, ctypes.c_uint, _P),
    "nvjpegDestroy": (_P,),
    "nvjpegJpegStateCreate": (_P, _P),
    "nvjpegJpegStateDestroy": (_P,),
    "nvjpegDecodeBatchedInitialize": (_P, _P, _I, _I, _I),
    "nvjpegDecodeBatched": (_P, _P, _P, _P, _P, _P),
    "nvjpegGetProperty": (_I, _P),
}
_STATUS = {
    1: "not initialised",
    2: "invalid parameter",
    3: "damaged JPEG",
    4: "JPEG of an unsupported kind",
    5: "allocation failed",
    6: "execution failed",
    7: "this GPU has no JPEG engine",
    8: "internal error",
    9: "not supported",
    10: "incomplete bitstream",
}


class Refused(Exception):
    """The engine rejected a batch."""


def find_library(name: str, variable: str, versions: Sequence[int] = (13, 12)) -> str | None:
    """The path of a CUDA library: from the environment variable, else in NVIDIA's wheels, else where the system's
    loader finds it."""
    path = os.environ.get(variable)
    if path:
        return path
    files = [f"{name}.so.{version}" for version in versions]

    def last(folders: Sequence[str]) -> str | None:
        found = sorted(f for folder in folders for file in files for f in glob.glob(os.path.join(folder, file)))
        return found[-1] if found else None

    for folder in sys.path:
        for pattern in ("nvidia/cu1[23]/lib", "nvidia/*/lib"):
            if path := last([os.path.join(folder or ".", pattern)]):
                return path
    for file in files:
        try:
            ctypes.CDLL(file)
            return file
        except OSError:
            pass
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return last([f"{home}/lib64", f"{home}/targets/*/lib"])


@cache
def library() -> ctypes.CDLL:
    """nvJPEG; CudaError if it is not installed."""
    path = find_library("libnvjpeg", "PENSTOCK_NVJPEG")
    if path is None:
        raise CudaError("nvJPEG is not installed; `pip install penstock[cuda13]` (or [cuda12]) brings it")
    lib = ctypes.CDLL(path)
    for name, arguments in _FUNCTIONS.items():
        getattr(lib, name).argtypes, getattr(lib, name).restype = arguments, _I
    return lib


def version() -> str:
    parts = []
    for kind in range(3):  # major, minor, patch
        value = _I()
        library().nvjpegGetProperty(kind, ctypes.byref(value))
        parts.append(str(value.value))
    return ".".join(parts)


class HardwareDecoder:
    """The engine of one device. Created inside `with device:`; Refused if the GPU has none. Decodes one batch at a
    time."""

    def __init__(self, device: Device):
        lib = library()
        self.device = device
        handle, state = _P(), _P()
        self._check(lib.nvjpegCreateEx(_HARDWARE, None, None, 0, ctypes.byref(handle)))
        self._handle = handle.value
        self._check(lib.nvjpegJpegStateCreate(self._handle, ctypes.byref(state)))
        self._state = state.value
        self._initialised = (0, 0)
        self._lock = threading.Lock()

    def _check(self, status: int) -> None:
        if status:
            raise Refused(_STATUS.get(status, f"status {status}"))

    def decode(
        self, data: np.ndarray, sizes: np.ndarray, to: np.ndarray, pitches: np.ndarray, format: int, stream: Stream
    ) -> None:
        """Decodes n files at addresses `data` (n,) of `sizes` (n,) bytes to the addresses `to` (n,) on the GPU, rows
        `pitches` (n,) bytes apart. Returns when all is queued in `stream`. After Refused, no output is valid."""
        n = len(data)
        data, sizes = np.ascontiguousarray(data, "u8"), np.ascontiguousarray(sizes, "u8")
        images = np.zeros((n, 8), "u8")  # nvjpegImage_t: the addresses of 4 channels, then their pitches
        images[:, 0], images[:, 4] = to, pitches
        lib = library()
        with self._lock:
            if self._initialised != (n, format):
                self._check(lib.nvjpegDecodeBatchedInitialize(self._handle, self._state, n, 1, format))
                self._initialised = (n, format)
            self._check(
                lib.nvjpegDecodeBatched(
                    self._handle, self._state, address(data), address(sizes), address(images), stream.handle
                )
            )

    def close(self) -> None:
        """Frees nvJPEG's resources. Call inside `with device:`, when the GPU is done."""
        if self._handle:
            library().nvjpegJpegStateDestroy(self._state)
            library().nvjpegDestroy(self._handle)
            self._handle = self._state = None
