# SPDX-License-Identifier: Apache-2.0
"""Loads the native library and calls its kernels. The only file that knows the C structs of the native side."""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .digest import SHIPPED, digest
from .library import Library, tell_of_python
from .rows import MAX_DIMS, TENSOR, ArgumentRows, address, check_dims, reserve  # noqa: F401  operators know them from here

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Kernel sources are in the installed package, or else in the checkout.
ROOT = os.path.join(_PACKAGE, "kernels")
if not os.path.isdir(ROOT):
    ROOT = os.path.join(os.path.dirname(os.path.dirname(_PACKAGE)), "kernels")
MAX_TENSORS = 8
ERROR_SIZE = 256
_NO_MEMORY = "out of memory: what the operator keeps while it handles the sample does not fit"

SPAN = np.dtype([("begin", "i8"), ("end", "i8")])
_INT64 = np.dtype("i8")

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
    _fields_ = [("rows", ctypes.c_void_p), ("buffer", ctypes.c_int32), ("in_place", ctypes.c_int32)]


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
        ("sample_of", ctypes.c_void_p),
        ("status", ctypes.c_void_p),
        ("errors", ctypes.c_void_p),
        ("spans", ctypes.c_void_p),
        ("threads", ctypes.c_void_p),
        ("step_ns", ctypes.c_void_p),
        ("first_step", ctypes.c_int32),
        ("chunk", ctypes.c_int32),
    ]


@cache
def library() -> Library:
    """The native library."""
    path = os.path.join(_PACKAGE, "libpenstock.so")
    if not os.path.exists(path):
        raise ImportError(
            "the native library libpenstock.so is not beside the package; in a source checkout run `make build`"
        )
    lib = Library(path)
    both = lib.digest()
    complete = os.path.exists(os.path.join(ROOT, "core", "version.cpp"))
    built, now = (both[:16], digest(ROOT)) if complete else (both[16:], digest(ROOT, SHIPPED))
    if built != now:
        raise ImportError(
            f"libpenstock.so was built from other kernel sources ({built}) than {ROOT} has ({now}); run `make build`"
        )
    tell_of_python(lib)
    return lib


def read_struct(header: str, name: str) -> tuple[np.dtype, frozenset[str]]:
    """The NumPy dtype of `struct <name> {...};` in a kernel's header, and the names of its pointer fields."""
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


class Sources(NamedTuple):
    """Kernels of another package: the folder of their sources, laid out like kernels/, and their library."""

    folder: str
    library: Library


_added: list[Sources] = []


def add_library(path: str, folder: str) -> None:
    """Registers the kernels of a third-party library with sources in `folder`: `kernel = "mine/solarize"` is
    folder/mine/solarize.{h,cu} and `solarize` in the library. Its exported functions are available in `library()`.
    Raises OSError if the library can't be loaded, ValueError if a kernel file already exists."""
    if any(os.path.samefile(s.folder, folder) for s in _added):
        return
    for at, _, files in os.walk(folder):
        for name in files:
            relative = os.path.relpath(os.path.join(at, name), folder)
            if known := file_of(relative):
                raise ValueError(
                    f"{os.path.join(folder, relative)} would be taken for {known}: put the kernels into a folder of "
                    f"another name, such as {os.path.join(folder, 'mine')}"
                )
    added = Library(path)
    library().others.append(added)
    _added.append(Sources(folder, added))


def folders() -> list[str]:
    """Folders of kernel sources."""
    return [ROOT, *(s.folder for s in _added)]


def file_of(path: str) -> str:
    """The path of a file below kernels/, such as "color/linear.cu", or below the folder of another library's kernels;
    "" if there is none."""
    return next((file for f in folders() if os.path.exists(file := os.path.join(f, path))), "")


def read_header(header: str) -> str:
    """The text of a header below kernels/, such as "color/linear.h"."""
    file = file_of(header)
    if not file:
        raise ImportError(f"there is no kernel {header} in {', '.join(folders())}")
    with open(file, encoding="utf-8") as f:
        return f.read()


def has_gpu_form(path: str) -> bool:
    """Whether a kernel has a .cu file."""
    return bool(path) and bool(file_of(f"{path}.cu"))


class Kernel:
    """`Kernel("color/linear")` is kernels/color/linear.{h,cpp,cu}: its C function and the type of its argument rows."""

    def __init__(self, path: str):
        self.path, self.name = path, path.rsplit("/", 1)[-1]
        struct = "".join(w[:1].upper() + w[1:] for w in self.name.split("_")) + "Args"
        self.args, self.pointers = read_struct(read_header(f"{path}.h"), struct)
        whole = library()
        file = file_of(f"{path}.h")
        own = next((s.library for s in _added if file.startswith(os.path.join(s.folder, ""))), whole)
        size = own.size_of_arguments(self.name)
        if size != (self.args.itemsize, whole.kernel_version()):
            raise ImportError(
                f"{own.name} was built from another {file}, or for another version of penstock; build it again"
            )
        self.address = own.address(self.name)

    def rows(self, n: int, columns: Mapping[str, object]) -> tuple[np.ndarray, list]:
        """Returns argument rows for `n` samples from columns or constants, and the objects that must stay alive while
        they are used: see `ArgumentRows.fill`."""
        rows = ArgumentRows(n, self.args, self.pointers)
        return rows.array, rows.fill(columns)


_kernels: dict[str, Kernel] = {}


def kernel(path: str) -> Kernel:
    """Returns one shared object per kernel, as plans compare kernels by identity."""
    return _kernels.get(path) or _kernels.setdefault(path, Kernel(path))


class Step:
    """One kernel of a chain with its argument rows and, for each tensor, the rows (None: to be filled in) and the
    scratch buffer (-1: none)."""

    __slots__ = ("args", "kernel", "n_out", "slots")

    def __init__(
        self,
        kernel: Kernel,
        args: np.ndarray,
        outs: Sequence[tuple[np.ndarray | None, int]],
        ins: Sequence[tuple[np.ndarray | None, int]],
    ):
        self.kernel, self.args, self.n_out, self.slots = kernel, args, len(outs), [*outs, *ins]
        if len(self.slots) > MAX_TENSORS:
            raise ValueError(
                f"[internal error] kernel {kernel.path} was given {len(self.slots)} tensors, at most {MAX_TENSORS}"
            )


class Outcome:
    """Result of running a chain. Per sample: a status (0, or 1 + failed step) and a reason. Per row and step: start and
    end time. Per row: the thread. Per step: total nanoseconds over all rows. Also the number of failed samples."""

    __slots__ = ("_block", "_shape", "address", "errors", "failed", "status")

    def __init__(self, status: np.ndarray, n_rows: int, n_steps: int):
        self.status = status  # (n_samples,) int32; samples with a status other than 0 are skipped
        self.failed = 0
        self.errors: ctypes.Array | None = None  # ERROR_SIZE bytes per sample, valid if its status says that it failed
        self._shape = n_rows, n_steps
        # One block is cheaper to allocate: sums, spans, threads.
        self._block, self.address = reserve(n_steps + 2 * n_rows * n_steps + (n_rows + 1) // 2, _INT64)

    @property
    def step_ns(self) -> np.ndarray:
        return self._block[: self._shape[1]]

    @property
    def spans(self) -> np.ndarray:
        n_rows, n_steps = self._shape
        return self._block[n_steps : n_steps + 2 * n_rows * n_steps].view(SPAN).reshape(n_rows, n_steps)

    @property
    def threads(self) -> np.ndarray:
        n_rows, n_steps = self._shape
        return self._block[n_steps + 2 * n_rows * n_steps :].view("i4")[:n_rows]

    def reason(self, sample: int) -> str:
        assert self.errors is not None
        text = ctypes.string_at(ctypes.addressof(self.errors) + ERROR_SIZE * int(sample)).decode("utf-8", "replace")
        return _NO_MEMORY if text == "std::bad_alloc" else text


class Program:
    """Steps in the form that native code reads. Can run repeatedly after `slots` were updated, but not concurrently."""

    __slots__ = ("_chain", "_errors", "_n_steps", "_packed", "n_rows", "slots", "steps")

    def __init__(self, steps: list[Step], n_rows: int):
        self.steps, self.n_rows, self._n_steps = steps, n_rows, len(steps)
        self._packed = (_Step * len(steps))()
        self.slots: list[list[_Slot]] = []  # per step: outputs, then inputs
        for c, step in zip(self._packed, steps):
            c.kernel, c.args, c.args_stride = step.kernel.address, address(step.args), step.args.itemsize
            c.n_out, c.n_in = step.n_out, len(step.slots) - step.n_out
            slots = [c.tensors[i] for i in range(len(step.slots))]
            for slot, (rows, buffer) in zip(slots, step.slots):
                slot.rows, slot.buffer = None if rows is None else address(rows), buffer
            self.slots.append(slots)
        self._chain = _Chain(ctypes.addressof(self._packed), len(steps), n_rows)
        self._errors: ctypes.Array = ctypes.create_string_buffer(0)

    def run(self, pool: Pool, outcome: Outcome, sample_of: np.ndarray | None = None, chunk: int = 0) -> None:
        """Runs all steps on every row; blocks without the GIL. The results are in `outcome`; its failure reasons are
        valid until the next run."""
        outcome.failed = library().pool_run(pool.handle(), self.bind(outcome, sample_of, chunk))

    def bind(self, outcome: Outcome, sample_of: np.ndarray | None = None, chunk: int = 0) -> int:
        """The address of a `struct Chain` that runs all steps. `sample_of` (n_rows,) int32 is the sample of each row,
        `chunk` the rows that a thread takes at a time (0: automatic, several if they are small)."""
        c = self._chain
        if len(self._errors) < ERROR_SIZE * len(outcome.status):
            self._errors = ctypes.create_string_buffer(ERROR_SIZE * len(outcome.status))
            c.errors = ctypes.addressof(self._errors)
        outcome.errors = self._errors
        c.sample_of = None if sample_of is None else address(sample_of)
        c.status, c.chunk = address(outcome.status), chunk
        c.step_ns = outcome.address
        c.spans = c.step_ns + 8 * self._n_steps
        c.threads = c.spans + SPAN.itemsize * self.n_rows * self._n_steps
        return ctypes.addressof(c)


class Pool:
    """`n` persistent native threads. After a fork, the child starts its own threads at first use."""

    def __init__(self, n: int):
        self.n = n
        self._fetchers: dict[tuple[int, int], Any] = {}
        self._start()

    def _start(self) -> None:
        self._pid, self._fetchers = os.getpid(), {}
        self._handle = library().pool_create(self.n)
        if not self._handle:
            raise RuntimeError(f"could not start {self.n} threads; lower num_threads")
        self.close = weakref.finalize(self, _destroy, self._handle, self._pid)
        self.close.atexit = False  # daemon threads may use it until the process exits

    def handle(self) -> int:
        """The native handle; starts new threads after a fork."""
        if os.getpid() != self._pid:
            self.close.detach()  # the threads belong to the parent process
            self._start()
        return self._handle

    def fetcher(self, n_threads: int = 0, most_bytes: int = 0) -> Any:
        """The Fetcher (core/fetch.py) for data sets. With `n_threads` threads for URLs; 0: as many as this pool, for
        files."""
        self.handle()
        key = n_threads or self.n, most_bytes
        found = self._fetchers.get(key)
        if found is None:
            from .fetch import MOST_BYTES, Fetcher

            found = self._fetchers.setdefault(key, Fetcher(key[0], most_bytes or MOST_BYTES, n_threads > 0))
        return found

    def run(self, steps: list[Step], n_rows: int, outcome: Outcome) -> None:
        """Runs steps once; see `Program.run`."""
        Program(steps, n_rows).run(self, outcome)


def _destroy(handle: int, pid: int) -> None:
    if os.getpid() == pid:
        library().pool_destroy(handle)


def take_memory(nbytes: int) -> int:
    """The address of 64-byte aligned memory from the pool; raises MemoryError."""
    address = library().memory_take(nbytes)
    if not address:
        raise MemoryError(f"could not allocate {nbytes} bytes")
    return address


def lay_out_batch(stored: np.ndarray, dtype: int, guard: int, rows: int) -> tuple[int, bool]:
    """Fills the n tensor rows at address `rows` for samples with extents `stored` (n, ndim). `data` becomes the offset
    in one block: packed if all have one shape, else each 64-byte aligned, with `guard` bytes behind each. Returns the
    size of the block and whether all have one shape; raises MemoryError if the size overflows."""
    n, ndim = stored.shape
    check_dims(ndim)
    about = (ctypes.c_int64 * 2)()
    if not library().lay_out_batch(stored.tobytes(), n, ndim, dtype, guard, rows, about):
        raise MemoryError(f"no memory is large enough for samples of the shapes {stored.tolist()[:4]}...")
    return about[0], bool(about[1])


def own_memory(address: int) -> object:
    """An object that returns pool memory when it is no longer referenced."""
    return library().own_memory(address)
