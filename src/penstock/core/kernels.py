# SPDX-License-Identifier: Apache-2.0
"""Loads the native library and its kernels. The only file that knows ctypes."""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from functools import cache

import numpy as np

from .digest import digest

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The kernels' sources lie in the package where it is installed, else in the checkout.
ROOT = os.path.join(_PACKAGE, "kernels")
if not os.path.isdir(ROOT):
    ROOT = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "kernels")
MAX_DIMS = 8
MAX_TENSORS = 8
ERROR_SIZE = 256

TENSOR = np.dtype([("data", "u8"), ("shape", "i8", MAX_DIMS), ("ndim", "i4"), ("dtype", "i4")], align=True)
SPAN = np.dtype([("begin", "i8"), ("end", "i8")])

_C_TYPES = {
    "float": "f4",
    "double": "f8",
    "uint8_t": "u1",
    "uint16_t": "u2",
    "uint32_t": "u4",
    "uint64_t": "u8",
    "int8_t": "i1",
    "int16_t": "i2",
    "int32_t": "i4",
    "int64_t": "i8",
}


class _Slot(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p), ("buffer", ctypes.c_int32), ("unused", ctypes.c_int32)]


class _Step(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_void_p),
        ("args", ctypes.c_void_p),
        ("args_stride", ctypes.c_int64),
        ("n_out", ctypes.c_int32),
        ("n_in", ctypes.c_int32),
        ("tensors", _Slot * MAX_TENSORS),
    ]


class _Chain(ctypes.Structure):
    _fields_ = [
        ("steps", ctypes.c_void_p),
        ("n_steps", ctypes.c_int32),
        ("n_rows", ctypes.c_int32),
        ("order", ctypes.c_void_p),
        ("sample_of", ctypes.c_void_p),
        ("status", ctypes.c_void_p),
        ("errors", ctypes.c_void_p),
        ("spans", ctypes.c_void_p),
        ("threads", ctypes.c_void_p),
        ("first_step", ctypes.c_int32),
        ("chunk", ctypes.c_int32),
    ]


@cache
def library() -> ctypes.CDLL:
    """The native library; CDLL drops the GIL for the length of each call."""
    path = os.path.join(_PACKAGE, "libpenstock.so")
    if not os.path.exists(path):
        raise ImportError(
            "the native library libpenstock.so is not beside the package; in a source checkout run `make build`"
        )
    lib = ctypes.CDLL(str(path))
    p, i32, i64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    for name, result, arguments in (
        ("kernels_digest", ctypes.c_char_p, ()),
        ("pool_create", p, (i32,)),
        ("pool_destroy", None, (p,)),
        ("pool_run", None, (p, p)),
        ("memory_take", p, (i64,)),
        ("memory_give", None, (p,)),
        ("memory_trim", None, (i64,)),
        ("memory_limit", None, (i64,)),
        ("memory_used", i64, ()),
        ("memory_idle", i64, ()),
        ("peek_images", i64, (p, i64, p, p)),
        ("philox", None, (ctypes.c_uint64, p, p, i64, ctypes.c_uint32, i64, i64, p)),
        ("memory_give_all", None, (p, i64)),
        ("permute", None, (ctypes.c_uint64, ctypes.c_uint32, i64, p, i64, p)),
        ("distribution_rows", i32, (p, i64, i64, i32, p)),
        ("buffer_shuffle", None, (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64, i64, i64, p)),
    ):
        getattr(lib, name).restype, getattr(lib, name).argtypes = result, arguments
    built, now = lib.kernels_digest().decode(), digest(ROOT)
    if built != now:
        raise ImportError(
            f"libpenstock.so was built from other kernel sources ({built}) than {ROOT} has ({now}); run `make build`"
        )
    return lib


def read_struct(header: str, name: str) -> tuple[np.dtype, frozenset[str]]:
    """The NumPy twin of `struct <name> {...};` in a kernel's header, and which of its fields are pointers."""
    body = re.search(rf"struct {name} \{{(.*?)\n?\}};", header, re.S)
    if body is None:
        raise ImportError(f"[internal error] no `struct {name}` in the kernel's header")
    fields: list[tuple] = []
    pointers = set()
    text = re.sub(r"//[^\n]*", "", body[1])
    for ctype, names in re.findall(r"(?:const\s+)?(\w+)\s+([^;]+);", text):
        for star, field, size in re.findall(r"(\*?)\s*(\w+)\s*(?:\[(\w+)\])?", names):
            if star:
                pointers.add(field)
                fields.append((field, "u8"))
            elif size:
                fields.append((field, _C_TYPES[ctype], MAX_DIMS if size == "kMaxDims" else int(size)))
            else:
                fields.append((field, _C_TYPES[ctype]))
    return np.dtype(fields or [("unused", "u1")], align=True), frozenset(pointers)


def read_header(header: str) -> str:
    """The text of a header below kernels/, such as "color/linear.h"."""
    with open(os.path.join(ROOT, header), encoding="utf-8") as f:
        return f.read()


def has_gpu_form(path: str) -> bool:
    """Whether a kernel has a .cu file."""
    return bool(path) and os.path.exists(os.path.join(ROOT, f"{path}.cu"))


class Kernel:
    """`Kernel("color/linear")` is kernels/color/linear.{h,cpp,cu}: its C function and the type of its argument rows."""

    def __init__(self, path: str):
        self.path, self.name = path, path.rsplit("/", 1)[-1]
        struct = "".join(w[:1].upper() + w[1:] for w in self.name.split("_")) + "Args"
        self.args, self.pointers = read_struct(read_header(f"{path}.h"), struct)
        self.address = ctypes.cast(getattr(library(), self.name), ctypes.c_void_p).value

    def rows(self, n: int, columns: dict[str, object]) -> tuple[np.ndarray, list]:
        """Argument rows for `n` samples from columns (or constants), and what must stay alive while they are used.

        A pointer field takes an array of shape (n, ...) and points each row at its part, or of shape (1, ...) to
        share it.
        """
        rows, alive = np.zeros(n, self.args), []
        for field, column in columns.items():
            if field in self.pointers:
                values = np.ascontiguousarray(column)
                alive.append(values)
                step = 0 if len(values) == 1 else values.strides[0]
                rows[field] = values.ctypes.data + step * np.arange(n, dtype="u8")
            else:
                rows[field] = column
        return rows, alive


@cache
def kernel(path: str) -> Kernel:
    return Kernel(path)


class Step:
    """One kernel of a chain with its argument rows and, for each tensor, the packed rows and the scratch buffer (-1:
    none)."""

    __slots__ = ("args", "kernel", "n_out", "slots")

    def __init__(
        self, kernel: Kernel, args: np.ndarray, outs: list[tuple[np.ndarray, int]], ins: list[tuple[np.ndarray, int]]
    ):
        self.kernel, self.args, self.n_out, self.slots = kernel, args, len(outs), outs + ins
        if len(self.slots) > MAX_TENSORS:
            raise ValueError(
                f"[internal error] kernel {kernel.path} was given {len(self.slots)} tensors, at most {MAX_TENSORS}"
            )


class Outcome:
    """What came of a chain: per sample a status (0, or 1 + step) and a reason, per row and step when it ran, and on
    which thread."""

    __slots__ = ("errors", "spans", "status", "threads")

    def __init__(self, status: np.ndarray, n_rows: int, n_steps: int):
        self.status = status  # (n_samples,) int32; samples that have failed before are passed over
        self.errors = np.zeros(len(status), f"S{ERROR_SIZE}")
        self.spans = np.zeros((n_rows, n_steps), SPAN)
        self.threads = np.zeros(n_rows, "i4")

    def reason(self, sample: int) -> str:
        return self.errors[sample].decode("utf-8", "replace")


class Pool:
    """`n` persistent native threads. After a fork the child gets threads of its own at first use."""

    def __init__(self, n: int):
        self.n = n
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._handle = library().pool_create(self.n)
        if not self._handle:
            raise RuntimeError(f"could not start {self.n} threads; lower num_threads")
        self.close = weakref.finalize(self, _destroy, self._handle, self._pid)
        self.close.atexit = False  # a daemon thread may be using it until the very end

    def run(self, steps: list[Step], n_rows: int, outcome: Outcome, order=None, sample_of=None, chunk: int = 1) -> None:
        """Takes every row through all steps; blocks without the GIL. Failures are in `outcome`."""
        if os.getpid() != self._pid:
            self.close.detach()  # the threads are the parent's
            self._start()
        packed = (_Step * len(steps))()
        for c, step in zip(packed, steps):
            c.kernel, c.args, c.args_stride = step.kernel.address, step.args.ctypes.data, step.args.itemsize
            c.n_out, c.n_in = step.n_out, len(step.slots) - step.n_out
            for slot, (rows, buffer) in zip(c.tensors, step.slots):
                slot.rows, slot.buffer = rows.ctypes.data, buffer
        chain = _Chain(
            ctypes.addressof(packed),
            len(steps),
            n_rows,
            None if order is None else order.ctypes.data,
            None if sample_of is None else sample_of.ctypes.data,
            outcome.status.ctypes.data,
            outcome.errors.ctypes.data,
            outcome.spans.ctypes.data,
            outcome.threads.ctypes.data,
            0,
            chunk,
        )
        library().pool_run(self._handle, ctypes.addressof(chain))


def _destroy(handle: int, pid: int) -> None:
    if os.getpid() == pid:
        library().pool_destroy(handle)


def take_memory(nbytes: int) -> int:
    """The address of 64-byte aligned memory from the pool; raises MemoryError."""
    address = library().memory_take(nbytes)
    if not address:
        raise MemoryError(f"could not allocate {nbytes} bytes")
    return address


def give_memory(address: int) -> None:
    library().memory_give(address)
