# SPDX-License-Identifier: Apache-2.0
"""Samples of data sets on their way from where they are stored: the native threads that read them, and one batch."""

from __future__ import annotations

import os
import sys
import weakref

import numpy as np

from . import kernels
from .rows import address

# Bytes that may be read ahead of the batch that is waited for.
_MOST_BYTES = 256 << 20
THREADS_BY_URL = 128  # each waits for one request at a time

FETCH, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "Fetch")
OUTPUT, _ = kernels.read_struct(kernels.read_header("read/fetcher.h"), "FetchOutput")


class Fetcher:
    """`n` native threads that read, for any number of readers and batches at once."""

    def __init__(self, n: int):
        self.pid = os.getpid()
        self.handle = kernels.library().fetcher_create(n, _MOST_BYTES)
        if not self.handle:
            raise RuntimeError(f"could not start {n} threads; lower num_threads")
        # A daemon thread may be using it until the very end.
        weakref.finalize(self, _destroy, self.handle, self.pid).atexit = False

    def begin(self, request: np.ndarray, alive: tuple) -> Fetch:
        """Begins to read what a `struct Fetch` asks for, whose memory is kept `alive`."""
        return Fetch(self, request, alive)


def _destroy(handle: int, pid: int) -> None:
    if os.getpid() == pid:
        kernels.library().fetcher_destroy(handle)


class Fetch:
    """One batch of one reader. It owns the memory of the samples that were read."""

    __slots__ = ("_alive", "_end", "_fetcher", "_job", "_pid", "request")

    def __init__(self, fetcher: Fetcher, request: np.ndarray, alive: tuple):
        self.request, self._alive, self._pid = request, alive, fetcher.pid
        # Looked up now, as the interpreter may be shutting down when the memory is given back.
        self._end = kernels.library().fetch_end
        self._fetcher: Fetcher | None = fetcher
        self._job = kernels.library().fetch_begin(fetcher.handle, address(request))
        if not self._job:
            raise MemoryError("out of memory: the table of a batch does not fit")

    def wait(self) -> int:
        """Until everything was read; says how many samples could not be."""
        assert self._fetcher is not None
        failed = kernels.library().fetch_wait(self._fetcher.handle, self._job)
        self._fetcher = None  # the threads need not live as long as the samples
        return failed

    def __del__(self, finalizing=sys.is_finalizing, getpid=os.getpid) -> None:
        job, self._job = getattr(self, "_job", None), None
        if not job or finalizing():
            return
        if self._fetcher is not None:  # nobody wanted it
            if getpid() != self._pid:
                return  # the threads that write to it are the parent's
            kernels.library().fetch_cancel(self._fetcher.handle, job)
        self._end(job)
