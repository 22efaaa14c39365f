# SPDX-License-Identifier: Apache-2.0
"""The part of CUDA's driver API that is used, through ctypes: it comes with every NVIDIA driver, works with every
Python and drops the GIL. The library is loaded when a GPU is first asked for.

Handles are integers. Calls that need a context are made inside `with device:`, which leaves the thread's own context as
it was: frameworks in the same process don't notice.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections import deque
from functools import cache
from typing import Any

from .driver_calls import FUNCTIONS, SHORT

_OLDEST_DRIVER = 12000  # CUDA 12.0
_OUT_OF_MEMORY, _NOT_READY = 2, 600
_MOST_MARKS = 64
_NO_TIMING, _SLEEPS, _NON_BLOCKING, _PORTABLE = 2, 1, 1, 1


class CudaError(RuntimeError):
    """CUDA or the GPU refused something."""


class OutOfDeviceMemory(CudaError, MemoryError):
    """The GPU's memory is full."""


_P, _I, _S = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
# Numbers of CUdevice_attribute.
_SM_COUNT, _MAJOR, _MINOR = 16, 75, 76
_MAX_DYNAMIC_SHARED = 8  # CUfunction_attribute


@cache
def _library() -> ctypes.CDLL:
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


_started = _forked = False


def _after_fork() -> None:
    global _forked
    _forked = _started


os.register_at_fork(after_in_child=_after_fork)


def _lib() -> ctypes.CDLL:
    global _started
    if _forked:
        raise CudaError(
            "this process was forked from one that had used CUDA already, and CUDA does not survive a fork; use the "
            "GPU "
            "in the child only, or start it by spawn"
        )
    lib = _library()
    _started = True
    return lib


def was_used() -> bool:
    """Whether this process, or the one it was forked from, has started CUDA through this module."""
    return _started


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def _explain(lib: ctypes.CDLL, code: int) -> str:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    lib.cuGetErrorName(code, ctypes.byref(name))
    lib.cuGetErrorString(code, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode()} ({(name.value or b'?').decode()}, {code})"


def check(code: int, doing: str) -> None:
    """Raises what a driver call returned, if it is an error."""
    if not code:
        return
    kind = OutOfDeviceMemory if code == _OUT_OF_MEMORY else CudaError
    raise kind(f"{doing}: {_explain(_lib(), code)}")


def driver_version() -> str:
    """The newest CUDA version the driver supports, such as "13.0"."""
    version = ctypes.c_int()
    check(_lib().cuDriverGetVersion(ctypes.byref(version)), "asking for the driver's version")
    return _dotted(version.value)


def device_count() -> int:
    count = ctypes.c_int()
    check(_lib().cuDeviceGetCount(ctypes.byref(count)), "counting the GPUs")
    return count.value


_lock = threading.Lock()
_devices: dict[int, Device] = {}


class Device:
    """A GPU of this machine, by its number. `with device:` makes it the current one."""

    def __init__(self, number: int):
        lib = _lib()
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
        self.n_multiprocessors = self._attribute(_SM_COUNT)
        self.capability = (self._attribute(_MAJOR), self._attribute(_MINOR))
        total = _S()
        check(lib.cuDeviceTotalMem_v2(ctypes.byref(total), self._handle), "asking for the GPU's memory")
        self.total_memory = total.value

    @staticmethod
    def get(number: int) -> Device:
        """The device with that number, opened once."""
        with _lock:
            _lib()
            if number not in _devices:
                _devices[number] = Device(number)
            return _devices[number]

    @property
    def architecture(self) -> str:
        """What kernels are compiled for: "sm_90"."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        check(_lib().cuDeviceGetAttribute(ctypes.byref(value), number, self._handle), "asking for a GPU's attribute")
        return value.value

    def __enter__(self) -> Device:
        check(_lib().cuCtxPushCurrent_v2(self._context), f"using GPU {self.id}")
        return self

    def __exit__(self, *exc: object) -> None:
        _lib().cuCtxPopCurrent_v2(ctypes.byref(_P()))

    def __repr__(self) -> str:
        return f"<GPU {self.id}: {self.name}, {self.architecture}, {self.total_memory >> 20} MiB>"

    # What follows is called inside `with device:`. -----------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        address = _P()
        check(_lib().cuMemAlloc_v2(ctypes.byref(address), nbytes), f"allocating {nbytes} bytes on GPU {self.id}")
        return address.value or 0

    def free(self, address: int) -> None:
        check(_lib().cuMemFree_v2(address), "freeing memory of the GPU")

    def free_memory(self) -> int:
        """Bytes of the GPU that nobody has taken."""
        free, total = _S(), _S()
        check(_lib().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "asking for the GPU's free memory")
        return free.value

    def allocate_pinned(self, nbytes: int) -> int:
        address = _P()
        check(_lib().cuMemHostAlloc(ctypes.byref(address), nbytes, _PORTABLE), f"allocating {nbytes} pinned bytes")
        return address.value or 0

    def free_pinned(self, address: int) -> None:
        check(_lib().cuMemFreeHost(address), "freeing pinned memory")

    def load(self, image: bytes) -> int:
        """Loads compiled code; returns the module."""
        module = _P()
        check(_lib().cuModuleLoadData(ctypes.byref(module), image), "loading a kernel")
        return module.value or 0

    def function(self, module: int, name: str, shared: int = 0) -> int:
        """The kernel called `name`, allowed to use `shared` bytes of dynamic shared memory."""
        function = _P()
        check(_lib().cuModuleGetFunction(ctypes.byref(function), module, name.encode()), f"finding kernel {name}")
        if shared > 48 << 10:
            check(
                _lib().cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, shared),
                f"reserving {shared} bytes of shared memory for kernel {name}",
            )
        return function.value or 0


class Event:
    """A point in a stream that others can wait for."""

    __slots__ = ("device", "handle")

    def __init__(self, device: Device, timed: bool = False, sleeps: bool = False):
        """`sleeps`: who waits for it sleeps, where it would otherwise ask again and again."""
        self.device = device
        handle = _P()
        flags = (0 if timed else _NO_TIMING) | (_SLEEPS if sleeps else 0)
        check(_lib().cuEventCreate(ctypes.byref(handle), flags), "making an event")
        self.handle = handle.value

    def done(self) -> bool:
        code = _lib().cuEventQuery(self.handle)
        if code == _NOT_READY:
            return False
        check(code, "asking whether the GPU is through")
        return True

    def wait(self) -> None:
        """Blocks this thread, without the GIL, until the GPU has come to it."""
        check(_lib().cuEventSynchronize(self.handle), "waiting for the GPU")

    def since(self, earlier: Event) -> float:
        """Milliseconds between two timed events."""
        ms = ctypes.c_float()
        check(_lib().cuEventElapsedTime(ctypes.byref(ms), earlier.handle, self.handle), "reading a GPU's clock")
        return ms.value

    def __del__(self, library=_library) -> None:
        if getattr(self, "handle", None) and not _forked:
            library().cuEventDestroy_v2(self.handle)


class Stream:
    """Work of the GPU in order. Made inside `with device:`.

    `work` counts what was asked for, so that what depends on it can be told by a number, and one event serves many."""

    __slots__ = ("__weakref__", "_lock", "_marks", "_through", "closed", "device", "handle", "work")

    def __init__(self, device: Device):
        self.device = device
        handle = _P()
        check(_lib().cuStreamCreate(ctypes.byref(handle), _NON_BLOCKING), "making a stream")
        self.handle, self.closed = handle.value, False
        self.work = self._through = 0
        self._marks: deque[tuple[int, Event]] = deque()
        self._lock = threading.Lock()

    def mark(self) -> Event:
        """An event behind all that was asked for until now."""
        with self._lock:
            return self._mark()

    def _mark(self) -> Event:
        marks = self._marks
        if marks and marks[-1][0] == self.work:
            return marks[-1][1]
        work, event = self.work, self.record()
        marks.append((work, event))
        if len(marks) > _MOST_MARKS:
            marks.popleft()
        return event

    def is_through(self, work: int) -> bool:
        """Whether the first `work` of what was asked for is done. If not, it is marked, so that it will be known."""
        if work <= self._through or self.closed:
            return True
        with self._lock:
            marks = self._marks
            while marks and marks[0][1].done():
                self._through = marks[0][0]
                if len(marks) == 1 and self._through == self.work:
                    break  # still good for those who want to wait
                marks.popleft()
            if work <= self._through:
                return True
            if not marks or marks[-1][0] < work:
                self._mark()
        return False

    def record(self, event: Event | None = None) -> Event:
        event = event or Event(self.device)
        check(_lib().cuEventRecord(event.handle, self.handle), "recording an event")
        return event

    def wait(self, event: Event) -> None:
        """What follows in this stream begins when the event has happened."""
        self.work += 1  # who waits for this stream waits for the event, too
        check(_lib().cuStreamWaitEvent(self.handle, event.handle, 0), "making a stream wait")

    def asked(self) -> None:
        """Says that others have asked this stream for something, or made it wait."""
        self.work += 1

    def synchronize(self) -> None:
        check(_lib().cuStreamSynchronize(self.handle), "waiting for the GPU")

    def upload(self, to: int, address: int, nbytes: int) -> None:
        if nbytes:
            self.work += 1
            check(_lib().cuMemcpyHtoDAsync_v2(to, address, nbytes, self.handle), f"copying {nbytes} bytes to the GPU")

    def download(self, to: int, address: int, nbytes: int) -> None:
        if nbytes:
            self.work += 1
            check(_lib().cuMemcpyDtoHAsync_v2(to, address, nbytes, self.handle), f"copying {nbytes} bytes from the GPU")

    def copy(self, to: int, address: int, nbytes: int) -> None:
        if nbytes:
            self.work += 1
            check(_lib().cuMemcpyDtoDAsync_v2(to, address, nbytes, self.handle), f"copying {nbytes} bytes on the GPU")

    def fill(self, address: int, value: int, nbytes: int) -> None:
        if nbytes:
            self.work += 1
            check(_lib().cuMemsetD8Async(address, value, nbytes, self.handle), f"filling {nbytes} bytes of the GPU")

    def launch(self, function: int, grid: tuple, block: tuple, shared: int, argument: Any) -> None:
        """Launches a kernel whose only argument is the ctypes structure `argument`, passed by value."""
        self.work += 1
        parameters = (_P * 1)(ctypes.addressof(argument))
        check(
            _lib().cuLaunchKernel(function, *grid, *block, shared, self.handle, parameters, None),
            f"launching a kernel of {grid} blocks of {block} threads",
        )

    def __del__(self, library=_library, finalizing=sys.is_finalizing) -> None:
        if getattr(self, "handle", None) and not _forked and not finalizing():
            # In a cycle of garbage, blocks of memory that its work uses may end after it: all is done by then.
            with self.device:
                library().cuStreamSynchronize(self.handle)
            self.closed = True
            library().cuStreamDestroy_v2(self.handle)


class ForeignStream(Stream):
    """A stream of another library, by its handle; 0 is the default stream."""

    __slots__ = ()

    def __init__(self, device: Device, handle: int):
        self.device, self.handle, self.closed = device, handle, False
        self.work = self._through = 0

    def __del__(self, library=_library, finalizing=sys.is_finalizing) -> None:
        """It is not ours."""

    def mark(self) -> Event:
        """Nobody counts what others ask for."""
        return self.record()
