# SPDX-License-Identifier: Apache-2.0
"""Memory that the main process and its workers share.

It is one anonymous file of the kernel (memfd), without a name in any file system: nothing is left when the last
process that has it open is gone, however it ended, and the size of /dev/shm does not matter. The file is sparse. Each
process has a zone of offsets of its own in which it alone hands out regions, so nothing needs a lock.
"""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict, deque
from collections.abc import Callable

import numpy as np

_ZONE = 1 << 40  # bytes of offsets per process
_PAGE = mmap.PAGESIZE
_SLACK = _PAGE  # kernels may read a little beyond a sample
_MAPPED = 64  # regions of other processes that a worker keeps mapped
_IDLE = 16  # regions kept for the next batches
STATUS_BYTES = 64


def create(n_workers: int) -> int:
    """The descriptor of a new arena."""
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
    """Where a worker's own zone of the arena begins."""
    return _ZONE * (worker + 2)


class Region:
    """A mapped part of the arena."""

    __slots__ = ("address", "capacity", "memory", "offset", "pid", "view")

    def __init__(self, fd: int, offset: int, capacity: int):
        self.offset, self.capacity, self.pid = offset, capacity, os.getpid()
        self.memory = mmap.mmap(fd, capacity, offset=offset)
        self.view = np.frombuffer(self.memory, "u1")
        self.address = self.view.ctypes.data

    def discard(  # at exit modules may be empty
        self, remove: int = getattr(mmap, "MADV_REMOVE", 0), getpid: Callable[[], int] = os.getpid
    ) -> None:
        """Gives the pages back to the system, for all processes; the mapping goes with the last reference. In a fork
        nothing happens, as they are its parent's."""
        if getpid() == self.pid:
            self.memory.madvise(remove)


class Status:
    """What each worker is doing, written by it and read by the main process, also after its death."""

    def __init__(self, fd: int, n_workers: int):
        memory = mmap.mmap(fd, align(STATUS_BYTES * max(n_workers, 1), _PAGE), offset=0)
        self.rows = np.frombuffer(memory, "i8").reshape(-1, STATUS_BYTES // 8)  # (task or 0, sample, began ns, ...)

    def clear(self, worker: int) -> None:
        self.rows[worker] = 0

    def of(self, worker: int) -> memoryview:
        return self.rows[worker].data


class Regions:
    """The main process's regions: one per batch on its way, used again when nobody has the batch any more."""

    def __init__(self, fd: int):
        self.fd = fd
        self._next = _ZONE  # the zone before holds the status page
        self._idle: deque[Region] = deque()
        self.capacities: dict[int, int] = {}  # of all regions there are, by their offset

    def take(self, nbytes: int) -> Lease:
        """At least that many bytes, until the lease is let go of."""
        wanted = align(nbytes + _SLACK, _PAGE)
        region = None
        for _ in range(len(self._idle)):
            found = self._idle.popleft()
            if found.capacity >= wanted:
                region = found
                break
            self._drop(found)  # outgrown
        while len(self._idle) > _IDLE:
            self._drop(self._idle.popleft())
        if region is None:
            capacity = align(wanted + wanted // 8, _PAGE)
            region = Region(self.fd, self._next, capacity)
            self._next += capacity
            self.capacities[region.offset] = capacity
        return Lease(region, self._idle)

    def _drop(self, region: Region) -> None:
        del self.capacities[region.offset]
        region.discard()


class Lease:
    """Keeps a region from being used again while a batch lies in it."""

    __slots__ = ("_idle", "region")

    def __init__(self, region: Region, idle: deque[Region]):
        self.region, self._idle = region, idle

    def __del__(self) -> None:
        self._idle.append(self.region)


class Spilled:
    """A worker's region for what did not fit; given back for good when the batch is gone."""

    __slots__ = ("region",)

    def __init__(self, fd: int, offset: int, capacity: int):
        self.region = Region(fd, offset, capacity)

    def __del__(self) -> None:
        if hasattr(self, "region"):
            self.region.discard()


class WorkerMemory:
    """A worker's view: the regions it is told to write to, and a zone of its own for what does not fit there."""

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
        """Makes the system say now that memory is short: a write to a page it can't supply would kill the process."""
        if self._reserved.get(offset, 0) < nbytes:
            try:
                os.posix_fallocate(self.fd, offset, nbytes)
            except OSError as e:
                raise MemoryError(f"no shared memory for {nbytes} bytes of samples: {e.strerror}") from None
            self._reserved[offset] = nbytes

    def spill(self, nbytes: int) -> tuple[int, mmap.mmap]:
        """A region of its own: its offset and memory."""
        capacity = align(nbytes + _SLACK, _PAGE)
        offset, self._next = self._next, self._next + capacity
        return offset, mmap.mmap(self.fd, capacity, offset=offset)
