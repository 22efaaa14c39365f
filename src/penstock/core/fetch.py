# SPDX-License-Identifier: Apache-2.0
"""Samples of data sets on their way from where they are stored: the native threads that read them, and one batch."""

from __future__ import annotations

import ctypes
import os
import sys
import weakref

import numpy as np

from . import kernels
from .rows import address, reserve

MOST_BYTES = 256 << 20  # of files that may be read ahead

# Of the structs of these names.
FETCH, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "Fetch")
OUTPUT, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "FetchOutput")
_DONE, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "FetchDone")


class Fetcher:
    """`n` native threads that read, for any number of readers and batches at once: at most so many bytes ahead of the
    batch that is waited for."""

    def __init__(self, n: int, most_bytes: int):
        self.pid = os.getpid()
        self.handle = kernels.library().fetcher_create(n, most_bytes)
        if not self.handle:
            raise RuntimeError(f"could not start {n} threads; lower num_threads")
        # A daemon thread may be using it until the very end.
        weakref.finalize(self, _destroy, self.handle, self.pid).atexit = False

    def begin(self, request: int, index: np.ndarray, out: int, dense: int, remote: int, alive: tuple) -> Fetch:
        """Begins to read the samples at `index`, (n,) int64, of the reader whose `struct Fetch` is at the address
        `request`. Addresses, too: `out`, of (n_out, n) tensors, and `dense`, of n_out addresses of memory or null, and
        `remote`, of the storage if names are URLs. What all of them refer to is kept `alive`."""
        return Fetch(self, request, index, out, dense, remote, alive)


def _destroy(handle: int, pid: int) -> None:
    if os.getpid() == pid:
        kernels.library().fetcher_destroy(handle)


class Fetch:
    """One batch of one reader. It owns the memory of the samples that were read."""

    __slots__ = (
        *("_alive", "_end", "_fetcher", "_job", "_pid", "begin_ns", "bytes_read", "end_ns", "most_held", "n_reads"),
    )

    def __init__(
        self, fetcher: Fetcher, request: int, index: np.ndarray, out: int, dense: int, remote: int, alive: tuple
    ):
        self._alive, self._pid = (index, alive), fetcher.pid
        # Looked up now, as the interpreter may be shutting down when the memory is given back.
        self._end = kernels.library().fetch_end
        self._fetcher: Fetcher | None = fetcher
        begin, at = kernels.library().fetch_begin, address(index)
        self._job = begin(fetcher.handle, request, at, len(index), out, dense, remote)
        if not self._job:
            raise MemoryError("out of memory: the table of a batch does not fit")

    def wait_for_most(self) -> None:
        """Until three quarters were read."""
        if self._fetcher is not None:
            kernels.library().fetch_wait_for_most(self._fetcher.handle, self._job)

    def wait(self) -> int:
        """Until everything was read; says how many samples could not be. From then on is known when that began and
        ended, of the monotonic clock, how many bytes were read, in how many calls, and how many the fetcher has held at
        most until then."""
        assert self._fetcher is not None
        done, at = reserve(1, _DONE)
        failed = kernels.library().fetch_wait(self._fetcher.handle, self._job, at)
        self.begin_ns, self.end_ns, self.bytes_read, self.n_reads, self.most_held = done.item()
        self._fetcher = None  # the threads need not live as long as the samples
        return failed

    def reasons(self) -> dict[int, str]:
        """The rows that could not be read, and why."""
        library, found, row = kernels.library(), {}, -1
        while (row := library.fetch_next_bad(self._job, row + 1)) >= 0:
            found[row] = ctypes.string_at(library.fetch_error(self._job, row)).decode("utf-8", "replace")
        return found

    def __del__(self, finalizing=sys.is_finalizing, getpid=os.getpid) -> None:
        job, self._job = getattr(self, "_job", None), None
        if not job or finalizing():
            return
        if self._fetcher is not None:  # nobody wanted it
            if getpid() != self._pid:
                return  # the threads that write to it are the parent's
            kernels.library().fetch_cancel(self._fetcher.handle, job)
        self._end(job)
