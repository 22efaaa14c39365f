# SPDX-License-Identifier: Apache-2.0
"""Memory shared by the main process and its workers.

It is one anonymous file (memfd) without a name in any file system: nothing remains when the last
process that has it open is gone, however it ended, and the size of /dev/shm does not matter. The file is sparse. Each
process allocates regions only in its own zone of offsets, so no lock is needed.
"""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

_ZONE = 1 << 40  # bytes of offsets per process
_PAGE = mmap.PAGESIZE
_SLACK = _PAGE  # kernels may read a little beyond a sample
_MAPPED = 64  # maximum regions of other processes that a worker keeps mapped
_IDLE = 16  # regions kept for later batches
STATUS_BYTES = 64


def create(n_workers: int) -> int:
    """Creates an arena; returns its file descriptor."""
    if not hasattr(os, "memfd_create"):
        raise OSError("worker processes need Linux (memfd_create); py_start_method='thread' works everywhere")
    fd = os.memfd_create("penstock", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, _ZONE * (n_workers + 2))
    except OSError as e:
        os.close(fd)
        raise OSError(f"shared memory for worker processes can't be had: {e}; see `ulimit -f`") from None
    return fd


def align(nbytes: int, to: int = 64) -> int:
    return -(-nbytes // to) * to


def zone_of(worker: int) -> int:
    """The offset of a worker's own zone."""
    return _ZONE * (worker + 2)


class Pinned(Protocol):
    """Memory registered as pinned memory of a GPU (gpu/registered.py)."""

    def given_back(self) -> None:
        """Records that no batch is in it any more. Takes no lock."""

    def done(self) -> bool:
        """Whether all copies from it are done. Does not wait."""

    def unregister(self) -> None:
        """Waits for copies from it, and unregisters it. Takes no lock."""


Pin = Callable[[int, int], "Pinned | None"]  # registers bytes at an address; None if that is refused


class Region:
    """A mapped part of the arena."""

    __slots__ = ("address", "capacity", "memory", "offset", "pid", "pinned", "view")

    def __init__(self, fd: int, offset: int, capacity: int):
        self.offset, self.capacity, self.pid = offset, capacity, os.getpid()
        self.memory = mmap.mmap(fd, capacity, offset=offset)
        self.view = np.frombuffer(self.memory, "u1")
        self.address = self.view.ctypes.data
        self.pinned: Pinned | None = None

    @property
    def is_idle(self) -> bool:
        """Whether it may be written to, if no batch is in it."""
        return self.pinned is None or self.pinned.done()

    def discard(  # default arguments, as modules may be cleared at exit
        self, remove: int = getattr(mmap, "MADV_REMOVE", 0), getpid: Callable[[], int] = os.getpid
    ) -> None:
        """Returns the pages to the system, for all processes; the mapping goes with the last reference. Does nothing in
        a forked child, as the pages are its parent's."""
        if getpid() == self.pid:
            if self.pinned is not None:
                self.pinned.unregister()
            self.memory.madvise(remove)


class Status:
    """What each worker is doing: written by it, read by the main process, also after its death."""

    def __init__(self, fd: int, n_workers: int):
        memory = mmap.mmap(fd, align(STATUS_BYTES * max(n_workers, 1), _PAGE), offset=0)
        self.rows = np.frombuffer(memory, "i8").reshape(-1, STATUS_BYTES // 8)  # (task or 0, sample, began ns, ...)

    def clear(self, worker: int) -> None:
        self.rows[worker] = 0

    def of(self, worker: int) -> memoryview:
        return self.rows[worker].data


class Regions:
    """The main process's regions: one per batch in flight, reused when the batch is gone and its copies to a GPU are
    done. `pin` registers each region as pinned memory."""

    def __init__(self, fd: int, pin: Pin | None = None):
        self.fd, self._pin, self._closed = fd, pin, False
        self._next = _ZONE  # the first zone holds the status page
        self._idle: deque[Region] = deque()
        self.capacities: dict[int, int] = {}  # of all existing regions, by offset

    def take(self, nbytes: int) -> Lease:
        """A region of at least `nbytes` bytes, reserved until the lease is deleted."""
        wanted = align(nbytes + _SLACK, _PAGE)
        region = None
        for _ in range(len(self._idle)):
            found = self._idle.popleft()
            if not found.is_idle:
                self._idle.append(found)
            elif found.capacity >= wanted:
                region = found
                break
            else:
                self._drop(found)  # too small
        while len(self._idle) > _IDLE and self._idle[0].is_idle:
            self._drop(self._idle.popleft())
        if region is None:
            capacity = align(wanted + wanted // 8, _PAGE)
            region = Region(self.fd, self._next, capacity)
            self._next += capacity
            self.capacities[region.offset] = capacity
            if self._pin is not None:
                region.pinned = self._pin(region.address, capacity)
        return Lease(region, self)

    def give_back(self, region: Region) -> None:
        """Takes a region back from its lease. Called by __del__, in any thread at any time: takes no lock."""
        if region.pinned is not None:
            region.pinned.given_back()
        self._idle.append(region)
        if self._closed:
            self._drop_idle()

    def close(self) -> None:
        """Drops the regions, those of leases when the leases are deleted."""
        self._closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        while True:
            try:
                region = self._idle.popleft()
            except IndexError:
                return
            self._drop(region)

    def _drop(self, region: Region) -> None:
        del self.capacities[region.offset]
        region.discard()


class Lease:
    """Prevents the reuse of a region while a batch is in it."""

    __slots__ = ("_regions", "region")

    def __init__(self, region: Region, regions: Regions):
        self.region, self._regions = region, regions

    def __del__(self) -> None:
        self._regions.give_back(self.region)


class Spilled:
    """A worker's region for samples that did not fit; freed when the batch is gone."""

    __slots__ = ("region",)

    def __init__(self, fd: int, offset: int, capacity: int):
        self.region = Region(fd, offset, capacity)

    def __del__(self) -> None:
        if hasattr(self, "region"):
            self.region.discard()


class WorkerMemory:
    """A worker's view of the arena: the regions it must write to, and its own zone for what does not fit there."""

    def __init__(self, fd: int, worker: int, spills_from: int = 0):
        self.fd = fd
        self._next = zone_of(worker) + spills_from
        self._mapped: OrderedDict[int, mmap.mmap] = OrderedDict()
        self._reserved: dict[int, int] = {}

    def region(self, offset: int, capacity: int) -> mmap.mmap:
        memory = self._mapped.get(offset)
        if memory is None:
            memory = self._mapped[offset] = mmap.mmap(self.fd, capacity, offset=offset)
            if len(self._mapped) > _MAPPED:
                old, _ = self._mapped.popitem(last=False)
                self._reserved = {k: v for k, v in self._reserved.items() if k // _PAGE != old // _PAGE}
        else:
            self._mapped.move_to_end(offset)
        return memory

    def reserve(self, offset: int, nbytes: int) -> None:
        """Allocates the pages now, so that a shortage raises MemoryError here instead of killing the process on a
        write."""
        if self._reserved.get(offset, 0) < nbytes:
            try:
                os.posix_fallocate(self.fd, offset, nbytes)
            except OSError as e:
                raise MemoryError(f"no shared memory for {nbytes} bytes of samples: {e.strerror}") from None
            self._reserved[offset] = nbytes

    def spill(self, nbytes: int) -> tuple[int, mmap.mmap]:
        """Takes a region in this worker's zone: its offset and memory."""
        capacity = align(nbytes + _SLACK, _PAGE)
        offset, self._next = self._next, self._next + capacity
        return offset, mmap.mmap(self.fd, capacity, offset=offset)
