# SPDX-License-Identifier: Apache-2.0
"""GPUDirect Storage: reads files to GPU memory, bypassing host memory, with NVIDIA's cuFile.

cuFile can also read through host memory, which our own threads do more simply. It is used only if it reports that it
can bypass the host.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.errors import SampleErrors
from .batch import DeviceBatch
from .driver import Device, driver
from .memory import Budget
from .nvjpeg import find_library
from .stream import Stream

# File systems that cuFile supports, by bit number in `dstatusflags`.
_SYSTEMS = {
    0: "Lustre",
    1: "WekaFS",
    2: "NFS",
    3: "GPFS",
    4: "NVMe",
    5: "NVMe-oF",
    6: "SCSI",
    7: "ScaleFlux",
    8: "NVMesh",
    9: "BeeGFS",
    10: "YRCloudFile",
    12: "ScateFS",
    13: "virtiofs",
    14: "PanFS",
}
_P2P = 4  # bit of `fflags`: NVMe by PCI P2PDMA, without NVIDIA's kernel module
# Files that indicate that cuFile can bypass the host. Without them cuFile is not started, as it would write an error
# log to the working folder.
_MODULES = ("/proc/driver/nvidia-fs", "/sys/module/nvidia_fs")
_SETTINGS = "/etc/cufile.json"
_THREADS = 16  # they mostly wait


class NotAllowed(RuntimeError):
    """Files can't be read directly to GPU memory; the text says why."""


class _Status(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("cuda", ctypes.c_int)]


class _Properties(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint),
        ("minor", ctypes.c_uint),
        ("poll_threshold", ctypes.c_size_t),
        ("max_direct_io", ctypes.c_size_t),
        ("supported", ctypes.c_uint),
        ("control", ctypes.c_uint),
        ("features", ctypes.c_uint),
        ("sizes", ctypes.c_uint * 5),
        ("reserve", ctypes.c_uint64 * 16),  # reserved for later versions
    ]


class Calls(NamedTuple):
    """Function addresses by their names in kernels/read/gpu_file.h, and a text of what cuFile supports."""

    functions: dict[str, int]
    supported: str


_lock = threading.Lock()


def calls(device: Device) -> Calls:
    """Starts cuFile in this process and returns its functions. Raises NotAllowed, which says why, if it can't be
    used."""
    library = driver()  # cuFile hangs without a driver
    path = os.environ.get("PENSTOCK_CUFILE")
    if path is None:
        if os.environ.get("PENSTOCK_CUDA_DRIVER"):
            raise NotAllowed("the GPU is an emulated one")
        if not (
            any(map(os.path.exists, _MODULES)) or os.path.exists(_SETTINGS) or "CUFILE_ENV_PATH_JSON" in os.environ
        ):
            raise NotAllowed(f"the kernel module nvidia-fs is not loaded, and no {_SETTINGS} asks for PCI P2PDMA")
        path = find_library("libcufile", "PENSTOCK_CUFILE", (0,))
        if path is None:
            raise NotAllowed("libcufile.so.0 was not found; install it by pip install nvidia-cufile")
    with _lock, device:
        return _start(path, library, os.getpid())


@cache
def _start(path: str, cuda: ctypes.CDLL, process: int) -> Calls:
    try:
        lib = ctypes.CDLL(path)
        for name in ("cuFileDriverOpen", "cuFileDriverGetProperties"):
            getattr(lib, name).restype = _Status
        functions = {
            "file_register": lib.cuFileHandleRegister,
            "file_unregister": lib.cuFileHandleDeregister,
            "file_read": lib.cuFileRead,
            "set_context": cuda.cuCtxSetCurrent,
            "copy": cuda.cuMemcpyHtoDAsync_v2,
            "synchronize": cuda.cuStreamSynchronize,
        }
        status = lib.cuFileDriverOpen()
    except (OSError, AttributeError) as e:
        raise NotAllowed(f"libcufile can't be used: {e}") from None
    if status.code:
        raise NotAllowed(f"cuFile could not be started (cuFileDriverOpen: {status.code}, {status.cuda})")
    p = _Properties()
    status = lib.cuFileDriverGetProperties(ctypes.byref(p))
    if status.code:
        raise NotAllowed(f"cuFile does not say what it supports (cuFileDriverGetProperties: {status.code})")
    supported = [name for bit, name in _SYSTEMS.items() if p.supported >> bit & 1]
    supported += ["PCI P2PDMA"] * (p.features >> _P2P & 1)
    if not supported:
        raise NotAllowed("cuFile would read by way of the host: it supports no file system of this machine")
    return Calls({k: ctypes.cast(f, ctypes.c_void_p).value or 0 for k, f in functions.items()}, ", ".join(supported))


class GpuFiles:
    """Reads parts of files directly to GPU memory."""

    def __init__(self, device: Device, budget: Budget):
        """Raises NotAllowed, which says why, if that is not possible."""
        self._calls, self._device, self._budget = calls(device), device, budget
        self._pool = kernels.Pool(_THREADS)
        with device:
            self._stream = Stream(device)

    def read(self, batch: Batch, paths: Sequence[bytes], offsets: np.ndarray) -> Batch:
        """Reads the samples to the GPU. Each is contiguous in its file from `offsets` (n,) on; if the offset is -1, it
        is already in the batch. Files that cuFile does not accept are read through host memory. Raises SampleErrors for
        samples that can't be read."""
        spec, n = batch.spec, len(paths)
        if (offsets < 0).all():
            return batch
        texts = [np.frombuffer(p, "u1") for p in paths]
        names = Batch.from_samples(texts)
        with self._device:
            out = DeviceBatch.on(self._stream, spec, self._budget, batch.sources)
            # cuFile does not wait for streams: earlier users of the memory must be done.
            self._stream.synchronize()
        kernel = kernels.kernel("read/gpu_file")
        rows, _ = kernel.rows(
            n,
            {
                "to": out.rows["data"].astype("i8"),
                "offset": offsets,
                "bytes": spec.stored.prod(axis=1) * spec.dtype.itemsize,
                "loaded": np.where(offsets < 0, batch.rows["data"].astype("i8"), 0),
                **self._calls.functions,
                "context": self._device.context,
                "stream": self._stream.handle,
            },
        )
        outcome = kernels.Outcome(np.zeros(n, "i4"), n, 1)
        self._pool.run([kernels.Step(kernel, rows, [], [(names.rows, -1)])], n, outcome)
        if outcome.failed:
            failed = outcome.status.nonzero()[0].tolist()
            raise SampleErrors({i: outcome.reason(i) for i in failed}, batch.sources, (out,))
        return out


def about(device: Device) -> str:
    """A text for reports about direct reads. Raises NotAllowed, which says why, if there are none."""
    found = calls(device)
    module = next((Path(m, "version") for m in _MODULES if Path(m, "version").exists()), None)
    version = f"nvidia-fs {module.read_text().split()[-1]}" if module else "without nvidia-fs"
    return f"by GPUDirect Storage ({version}; {found.supported})"
