# SPDX-License-Identifier: Apache-2.0
"""Loading of samples: the native threads that read them, and one batch being read."""

from __future__ import annotations

import ctypes
import os
import weakref

import numpy as np

from . import kernels
from .rows import address, reserve

MOST_BYTES = 256 << 20  # of files read ahead

# The C structs with these names.
FETCH, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "Fetch")
OUTPUT, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "FetchOutput")
_DONE, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "FetchDone")


class Fetcher:
    """`n` native threads that read for any number of readers and batches at once, at most `most_bytes` ahead of the
    batch being waited for. With `wait`, they mostly wait for other machines and do not preempt computing threads."""

    def __init__(self, n: int, most_bytes: int, wait: bool):
        self.handle = kernels.library().fetcher_create(n, most_bytes, wait)
        if not self.handle:
            raise RuntimeError(f"could not start {n} threads; lower num_threads")
        # Daemon threads may use it until the process exits.
        weakref.finalize(self, _destroy, self.handle, os.getpid()).atexit = False

    def begin(self, request: int, index: np.ndarray, out: int, dense: int, remote: int, alive: tuple) -> Fetch:
        """Begins to read the samples at `index`, (n,) int64, of the reader whose `struct Fetch` is at address
        `request`. Other addresses: `out`, (n_out, n) tensor rows; `dense`, n_out memory addresses or null; `remote`,
        the storage if names are URLs. `alive` holds references to everything they point to."""
        return Fetch(self, request, index, out, dense, remote, alive)


def _destroy(handle: int, pid: int) -> None:
    if os.getpid() == pid:
        kernels.library().fetcher_destroy(handle)


class Fetch:
    """One batch of one reader. `owner` owns the memory of the samples read. Deleting it before `wait` cancels the
    read."""

    __slots__ = ("_alive", "_fetcher", "_job", "begin_ns", "bytes_read", "end_ns", "most_held", "n_reads", "owner")

    def __init__(
        self, fetcher: Fetcher, request: int, index: np.ndarray, out: int, dense: int, remote: int, alive: tuple
    ):
        library = kernels.library()
        self._fetcher: Fetcher | None = fetcher
        self._alive: list[object] = [fetcher, index, alive]
        begin, at = library.fetch_begin, address(index)
        self.owner = begin(fetcher.handle, request, at, len(index), out, dense, remote, self._alive)
        self._job = library.fetch_job(self.owner)

    def wait_for_most(self) -> None:
        """Blocks until three quarters are read."""
        if self._fetcher is not None:
            kernels.library().fetch_wait_for_most(self._fetcher.handle, self._job)

    def wait(self) -> int:
        """Blocks until everything is read; returns the number of samples that failed. Afterwards these are set:
        begin_ns and end_ns (monotonic clock), bytes_read, n_reads (number of read calls) and most_held, the most bytes
        the fetcher has held so far."""
        assert self._fetcher is not None
        library, (done, at) = kernels.library(), reserve(1, _DONE)
        failed = library.fetch_wait(self._fetcher.handle, self._job)
        library.fetch_done(self.owner, at)
        self.begin_ns, self.end_ns, self.bytes_read, self.n_reads, self.most_held = done.item()
        self._fetcher, self._alive[0] = None, None  # the fetcher may be freed before the samples
        return failed

    def reasons(self) -> dict[int, str]:
        """{row: reason} for the rows that could not be read."""
        library, found, row = kernels.library(), {}, -1
        while (row := library.fetch_next_bad(self._job, row + 1)) >= 0:
            found[row] = ctypes.string_at(library.fetch_error(self._job, row)).decode("utf-8", "replace")
        return found
