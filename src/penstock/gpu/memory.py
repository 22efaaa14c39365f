# SPDX-License-Identifier: Apache-2.0
"""Pools of GPU memory, and of pinned host memory. A block is returned as soon as it is unreferenced, although the GPU
may still use it: its next user waits for that, on the GPU."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from . import dlpack_export
from .driver import CudaError, Device, OutOfDeviceMemory, forked
from .stream import Event, ForeignStream, Stream
from .uses import Use, UsedMemory

_SMALLEST = 512
# Maximum returned, still busy blocks per size: beyond that, a request waits for the oldest one, on the GPU; below,
# another block is allocated. With its own block, batches on three streams overlap.
_SPARE = 2
_MOST_USES = 8  # uses of a block by other libraries before finished ones are removed


_forks = 0  # number of forks of this process since the first pool was created


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


@lru_cache(1024)
def size_class(nbytes: int) -> int:
    """The block size for a request: at most an eighth larger (small ones: a multiple of 512), so that image batches,
    whose sizes vary, can reuse earlier blocks."""
    bits = (nbytes - 1).bit_length()
    step = 1 << bits - 4 if bits > 13 else _SMALLEST
    return -(-nbytes // step) * step if nbytes > 0 else _SMALLEST


def _pinned_class(nbytes: int) -> int:
    """The same for pinned memory. Pinning pages is slow: few sizes, so that blocks can often be reused."""
    return 1 << max(nbytes - 1, 4095).bit_length()


class Budget:
    """Bytes that one pipeline has taken from a pool, and its limit (None: no limit)."""

    def __init__(self, limit: int | None = None):
        self.limit, self.used, self.peak = limit, 0, 0

    def charge(self, nbytes: int) -> None:
        if self.limit is not None and self.used + nbytes > self.limit:
            raise OutOfDeviceMemory(
                f"the pipeline holds {self.used >> 20} MiB of the GPU's memory and needs {nbytes >> 20} MiB more, "
                f"above its device_memory_limit of {self.limit >> 20} MiB; raise the limit, or lower batch_size or "
                "prefetch_queue_depth"
            )
        self.used = used = self.used + nbytes
        if used > self.peak:
            self.peak = used


class Block(UsedMemory):
    """Memory from a pool; returned to it when unreferenced."""

    __slots__ = ("__weakref__", "_budget", "_pool", "_uses", "address", "nbytes", "size")

    def __init__(self, pool: Pool, address: int, nbytes: int, size: int, stream: Stream, budget: Budget | None):
        self.address, self.nbytes, self.size = address, nbytes, size
        self._pool, self._streams, self._budget = pool, [stream], budget
        self._uses: list[Use] = []  # uses that end regardless of later work on the streams

    def used_until(self, stream: int, event: Event) -> None:
        """Records that another library's stream has used it, and does not after the event."""
        uses = self._uses
        if len(uses) >= _MOST_USES:
            for use in [u for u in uses if u.is_over()]:
                with contextlib.suppress(ValueError):  # another thread was faster
                    uses.remove(use)
        uses.append(Use.before(stream, event))

    def is_idle(self) -> None:
        """Records that all work that uses it is done."""
        self._streams.clear()
        self._uses.clear()

    def __del__(self, finalizing=sys.is_finalizing) -> None:
        if getattr(self, "address", 0) and not finalizing():
            self._pool.give(self)


class Pool:
    """Memory of one device, or host memory pinned for it."""

    def __init__(self, device: Device, pinned: bool):
        self.device, self.pinned = device, pinned
        self._class = _pinned_class if pinned else size_class
        self._free: dict[int, list[tuple[int, tuple[Use, ...]]]] = {}
        # Blocks are returned by __del__, in any thread at any time: it must not take locks.
        self._returned: deque[tuple[int, int, tuple[Use, ...]]] = deque()
        self._lock = threading.Lock()
        self._forks = _forks
        self._released = dlpack_export.released_list()
        self.held = 0  # bytes taken from the driver

    def take(self, nbytes: int, stream: Stream, budget: Budget | None = None) -> Block:
        """Returns a block for use on `stream`. Call inside `with device:`."""
        size = self._class(nbytes)
        if self._released.value:
            dlpack_export.collect()
        if budget is not None:
            budget.charge(size)
        address = 0
        uses: tuple[Use, ...] = ()
        try:
            with self._lock:
                if self._returned:
                    self._collect()
                address, uses = self._find(size, stream, budget)
            if not address:
                address = self._allocate(size)
            elif uses:
                self._wait(uses, stream)
        except BaseException:
            if budget is not None:
                budget.used -= size
            if address:
                self._returned.append((address, size, uses))
            raise
        return Block(self, address, nbytes, size, stream, budget)

    def _wait(self, uses: tuple[Use, ...], stream: Stream) -> None:
        """Makes a stream wait for the earlier users of a block."""
        for use in uses:
            if use.handle != stream.handle:
                use.wait(stream)

    def take_all(self, sizes: Sequence[int], stream: Stream, budget: Budget | None = None) -> list[Block]:
        """Returns several blocks."""
        classes = list(map(self._class, sizes))
        blocks: list[Block] = []
        found: list[tuple[int, tuple[Use, ...]]] = []
        if self._released.value:
            dlpack_export.collect()
        if budget is not None:
            budget.charge(sum(classes))
        try:
            with self._lock:
                self._collect()
                found = [self._find(size, stream, budget) for size in classes]
            for nbytes, size, (address, uses) in zip(sizes, classes, found):
                if uses:
                    self._wait(uses, stream)
                blocks.append(Block(self, address or self._allocate(size), nbytes, size, stream, budget))
        except BaseException:
            # Blocks already created return themselves.
            if budget is not None:
                budget.used -= sum(classes[len(blocks) :])
            self._returned += [(a, n, u) for n, (a, u) in zip(classes[len(blocks) :], found[len(blocks) :]) if a]
            raise
        return blocks

    def _find(self, size: int, stream: Stream, budget: Budget | None) -> tuple[int, tuple[Use, ...]]:
        """The address of a block, or 0 if another must be allocated; and the uses that the stream must wait for.
        Requires _lock.

        Prefers blocks without a wait, as batches that wait for each other don't overlap."""
        free = self._free.get(size)
        if not free:
            return 0, ()
        pinned, handle = self.pinned, stream.handle
        for i, (address, uses) in enumerate(free):
            for use in uses:
                if (pinned or use.handle != handle) and not use.is_known_to_be_done():
                    break
            else:
                del free[i]
                return address, ()
        pending: dict[int | None, int] = {}  # by stream, work known not to be done
        for i, (address, uses) in enumerate(free):
            for use in uses:
                if (pinned or use.handle != handle) and not use.done_but(pending):
                    break
            else:
                del free[i]
                return address, ()
        # Before the host writes pinned memory, the GPU must be done with it.
        return (0, ()) if pinned or self._may_grow(size, len(free), budget) else free.pop(0)

    def _may_grow(self, size: int, spare: int, budget: Budget | None) -> bool:
        """Whether to allocate a block instead of waiting for one of the `spare` busy ones."""
        most = self.device.total_memory // 2
        if budget is not None and budget.limit is not None:
            most = min(most, budget.limit)
        return spare < _SPARE and self.held + size <= most

    def _allocate(self, size: int) -> int:
        make = self.device.allocate_pinned if self.pinned else self.device.allocate
        try:
            address = make(size)
        except OutOfDeviceMemory as e:
            self.trim()
            try:
                address = make(size)
            except OutOfDeviceMemory:
                if self.pinned:
                    raise
                raise OutOfDeviceMemory(
                    f"{self.device.name} (GPU {self.device.id}) has {self.device.free_memory() >> 20} MiB left and a "
                    f"batch needs {size >> 20} MiB in one piece; this process's pipelines hold {self.held >> 20} MiB. "
                    "Lower batch_size or prefetch_queue_depth, or what other libraries hold"
                ) from e
        self.held += size
        return address

    def give(self, block: Block) -> None:
        """Takes a block back; work in progress on its streams may still use it."""
        address, block.address = block.address, 0
        if block._budget is not None:
            block._budget.used -= block.size
        if self._forks != _forks:
            return
        uses = block.uses()
        if block._uses:
            uses += tuple(block._uses)
        self._returned.append((address, block.size, uses))

    def _collect(self) -> None:
        if self._released.value:
            dlpack_export.collect()
        while self._returned:
            address, size, uses = self._returned.popleft()
            self._free.setdefault(size, []).append((address, uses))

    def idle(self) -> int:
        """Unused bytes."""
        with self._lock:
            self._collect()
            return sum(size * len(blocks) for size, blocks in self._free.items())

    def trim_idle(self) -> None:
        """As `trim`, except for blocks that the GPU may still use. May be called by the garbage collector at any time,
        also while this thread holds a lock: never blocks."""
        if not self._lock.acquire(blocking=False):
            return
        idle: dict[int, int] = {}  # size by address
        try:
            self._collect()
            for size, blocks in self._free.items():
                idle |= {address: size for address, uses in blocks if all(u.is_over() for u in uses)}
                blocks[:] = [b for b in blocks if b[0] not in idle]
        finally:
            self._lock.release()
        for address, size in idle.items():
            (self.device.free_pinned if self.pinned else self.device.free)(address)
            self.held -= size

    def trim(self) -> None:
        """Returns unused memory to the driver. Call inside `with device:`."""
        with self._lock:
            self._collect()
            free, self._free = self._free, {}
        for size, blocks in free.items():
            for address, uses in blocks:
                for use in uses:
                    use.block()
                (self.device.free_pinned if self.pinned else self.device.free)(address)
                self.held -= size


_lock = threading.Lock()
_pools: dict[tuple[int, bool], Pool] = {}


def pool(device: Device, pinned: bool = False) -> Pool:
    """The pool of a device in this process."""
    key = device.id, pinned
    found = _pools.get(key)
    if found is None:
        with _lock:
            found = _pools.setdefault(key, Pool(device, pinned))
    return found


def give_back(device: Device, streams: Sequence[Stream]) -> None:
    """Returns the unused memory of a device's pools to the driver when the owner of the streams is deleted, in any
    thread at any time."""
    if forked():
        return
    try:
        with device:
            for stream in streams:
                work = stream.work
                stream.synchronize()
                stream.reached(work)
            for pinned in (False, True):
                pool(device, pinned).trim_idle()
    except CudaError:  # the GPU is lost, and its memory with it
        pass


def give_back_all() -> None:
    """Returns the unused memory of all pools to the driver."""
    for memory in list(_pools.values()) if not forked() else ():
        with memory.device:
            memory.trim()


def wait_for(consumer: Stream | int | Any, event: Event, device: Device) -> None:
    """Makes a stream, also one of another library, wait for an event."""
    stream = consumer if isinstance(consumer, Stream) else ForeignStream(device, int(consumer))
    with device:
        stream.wait(event)
