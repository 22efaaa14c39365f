# SPDX-License-Identifier: Apache-2.0
"""The functions of CUDA's driver API that are used, through ctypes: it comes with every NVIDIA driver, works with every
Python, and calls that wait release the GIL. The library is loaded when a GPU is first used.

Handles are integers. Calls that need a context are made inside `with device:`, which restores the thread's context
afterwards, so that frameworks in the same process are not affected.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from functools import cache

from ..core import kernels
from .driver_calls import FUNCTIONS, NATIVE, SHORT, TIMED

_OLDEST_DRIVER = 12000  # CUDA 12.0
_OUT_OF_MEMORY, NOT_READY = 2, 600
_PORTABLE = 1
# Sticky errors, after which CUDA can't be used in the process: memory errors, illegal addresses and instructions, ...
_LASTING = {214, 220, 700, 702, 709, 710, *range(714, 720)}


class CudaError(RuntimeError):
    """A CUDA call failed."""


class OutOfDeviceMemory(CudaError, MemoryError):
    """The GPU's memory is full. `asked`: node numbers, with the bytes requested for their outputs; `shared`: bytes
    requested for all of them."""

    asked: Sequence[tuple[int, int]] = ()
    shared = 0


_P, _I, _S = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
# Values of CUdevice_attribute.
_MAJOR, _MINOR = 75, 76
_MAX_DYNAMIC_SHARED = 8  # CUfunction_attribute
_MAX_SHARED_OF_A_BLOCK = 97  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN


@cache
def library() -> ctypes.CDLL:
    path = os.environ.get("PENSTOCK_CUDA_DRIVER") or "libcuda.so.1"
    try:
        lib, short = ctypes.CDLL(path), ctypes.PyDLL(path)
    except OSError as e:
        raise CudaError(
            f"no NVIDIA driver was found ({e}). A GPU pipeline needs an NVIDIA GPU and its driver; without them leave "
            "`device` out and pass device_id=None"
        ) from None
    for name, arguments in FUNCTIONS.items():
        function = getattr(short if name in SHORT else lib, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
        setattr(lib, name, function)
    ours = kernels.library()
    ours.driver_functions((_P * len(NATIVE))(*(ctypes.cast(getattr(lib, name), _P).value for name in NATIVE)))
    for name, timed in TIMED.items():
        setattr(lib, name, getattr(ours, timed))
    code = lib.cuInit(0)
    if code:
        raise CudaError(f"the NVIDIA driver could not be started: {_explain(lib, code)}")
    version = ctypes.c_int()
    lib.cuDriverGetVersion(ctypes.byref(version))
    if version.value < _OLDEST_DRIVER:
        raise CudaError(
            f"the NVIDIA driver supports CUDA {_dotted(version.value)}, penstock needs {_dotted(_OLDEST_DRIVER)} or "
            "newer; update the driver"
        )
    return lib


_starter = 0  # id of the process that started CUDA: this one, or an ancestor by fork
_live: ctypes.CDLL | None = None  # the driver, if started in this process


def _after_fork() -> None:
    global _live
    _live = None


os.register_at_fork(after_in_child=_after_fork)


def driver() -> ctypes.CDLL:
    global _starter, _live
    if _live is not None:
        return _live
    if forked():
        raise CudaError(
            "this process was forked from one that had used CUDA already, and CUDA does not survive a fork; use the "
            "GPU in the child only, or start it by spawn"
        )
    _live = library()
    _starter = os.getpid()
    return _live


def forked() -> bool:
    """Whether CUDA was used before this process was forked. Compares process ids, as other fork hooks, which may delete
    streams, run before this module's."""
    return _starter not in (0, os.getpid())


def was_used() -> bool:
    """Whether this process, or the one it was forked from, has started CUDA through this module."""
    return _starter != 0


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _explain(lib: ctypes.CDLL, code: int) -> str:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    lib.cuGetErrorName(code, ctypes.byref(name))
    lib.cuGetErrorString(code, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode()} ({(name.value or b'?').decode()}, {code})"


def check(code: int, doing: str) -> None:
    """Raises an exception if a driver call returned an error."""
    if not code:
        return
    kind = OutOfDeviceMemory if code == _OUT_OF_MEMORY else CudaError
    advice = (
        ". Work that was asked for earlier has failed, not necessarily this library's, and this process can't use the "
        "GPU any more: start it anew; `compute-sanitizer python ...` tells the kernel"
        if code in _LASTING
        else ""
    )
    raise kind(f"{doing}: {_explain(driver(), code)}{advice}")


def driver_version() -> str:
    """The newest CUDA version that the driver supports, such as "13.0"."""
    version = ctypes.c_int()
    check(driver().cuDriverGetVersion(ctypes.byref(version)), "asking for the driver's version")
    return _dotted(version.value)


def newest_toolkit() -> int | None:
    """The major version of the newest CUDA whose code the driver can load; None if CUDA was not started here."""
    if _live is None:
        return None
    version = ctypes.c_int()
    return version.value // 1000 if not _live.cuDriverGetVersion(ctypes.byref(version)) else None


def device_count() -> int:
    count = ctypes.c_int()
    check(driver().cuDeviceGetCount(ctypes.byref(count)), "counting the GPUs")
    return count.value


def shared_memory_of_a_block() -> int:
    """Bytes of shared memory that a thread block can use on every GPU of this machine; 0 if CUDA has not been used."""
    if not was_used():
        return 0
    found = []
    for number in range(device_count()):
        handle, value = ctypes.c_int(), ctypes.c_int()
        check(driver().cuDeviceGet(ctypes.byref(handle), number), f"opening GPU {number}")
        what = "asking for a GPU's attribute"
        check(driver().cuDeviceGetAttribute(ctypes.byref(value), _MAX_SHARED_OF_A_BLOCK, handle.value), what)
        found.append(value.value)
    return min(found, default=0)


_lock = threading.Lock()
_devices: dict[int, Device] = {}


class Device:
    """A GPU of this machine, by number. `with device:` makes it current."""

    def __init__(self, number: int):
        lib = driver()
        count = device_count()
        if not 0 <= number < count:
            have = "no GPU" if count == 0 else f"{count} GPU{'s' * (count > 1)}, numbered from 0"
            raise CudaError(f"device_id={number} can't be used: this machine has {have}")
        self.id = number
        handle, context = ctypes.c_int(), _P()
        check(lib.cuDeviceGet(ctypes.byref(handle), number), f"opening GPU {number}")
        self._handle = handle.value
        check(lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), self._handle), f"starting CUDA on GPU {number}")
        self._context = context.value
        name = ctypes.create_string_buffer(256)
        check(lib.cuDeviceGetName(name, 256, self._handle), "asking for the GPU's name")
        self.name = name.value.decode()
        self.capability = (self._attribute(_MAJOR), self._attribute(_MINOR))
        total = _S()
        check(lib.cuDeviceTotalMem_v2(ctypes.byref(total), self._handle), "asking for the GPU's memory")
        self.total_memory = total.value

    @staticmethod
    def get(number: int) -> Device:
        """The device with this number, opened once."""
        with _lock:
            driver()
            if number not in _devices:
                _devices[number] = Device(number)
            return _devices[number]

    @property
    def context(self) -> int:
        """The handle of its primary context."""
        assert self._context is not None
        return self._context

    @property
    def architecture(self) -> str:
        """The architecture that kernels are compiled for, such as "sm_90"."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        check(driver().cuDeviceGetAttribute(ctypes.byref(value), number, self._handle), "asking for a GPU's attribute")
        return value.value

    def __enter__(self) -> Device:
        check(driver().cuCtxPushCurrent_v2(self._context), f"using GPU {self.id}")
        return self

    def __exit__(self, *exc: object) -> None:
        driver().cuCtxPopCurrent_v2(ctypes.byref(_P()))

    def __repr__(self) -> str:
        return f"<GPU {self.id}: {self.name}, {self.architecture}, {self.total_memory >> 20} MiB>"

    # Call the following methods inside `with device:` ------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        address = _P()
        check(driver().cuMemAlloc_v2(ctypes.byref(address), nbytes), f"allocating {nbytes} bytes on GPU {self.id}")
        return address.value or 0

    def free(self, address: int) -> None:
        check(driver().cuMemFree_v2(address), "freeing memory of the GPU")

    def free_memory(self) -> int:
        """Free bytes of the GPU's memory."""
        free, total = _S(), _S()
        check(driver().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "asking for the GPU's free memory")
        return free.value

    def allocate_pinned(self, nbytes: int) -> int:
        address = _P()
        check(driver().cuMemHostAlloc(ctypes.byref(address), nbytes, _PORTABLE), f"allocating {nbytes} pinned bytes")
        return address.value or 0

    def free_pinned(self, address: int) -> None:
        check(driver().cuMemFreeHost(address), "freeing pinned memory")

    def register(self, address: int, nbytes: int) -> None:
        """Pins memory that was allocated by others."""
        check(driver().cuMemHostRegister_v2(address, nbytes, _PORTABLE), f"pinning {nbytes} bytes")

    def unregister(self, address: int) -> None:
        """Ends what `register` began. Call before the memory is unmapped."""
        check(driver().cuMemHostUnregister(address), "unpinning memory")

    def load(self, image: bytes) -> int:
        """Loads compiled code; returns the module."""
        module = _P()
        check(driver().cuModuleLoadData(ctypes.byref(module), image), "loading a kernel")
        return module.value or 0

    def function(self, module: int, name: str, shared: int = 0) -> int:
        """The kernel called `name`, allowed to use `shared` bytes of dynamic shared memory."""
        function = _P()
        check(driver().cuModuleGetFunction(ctypes.byref(function), module, name.encode()), f"finding kernel {name}")
        if shared > 48 << 10:
            check(
                driver().cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared),
                f"reserving {shared} bytes of shared memory for kernel {name}",
            )
        return function.value or 0
