# SPDX-License-Identifier: Apache-2.0
"""Memory of the GPU, and pinned memory of the host that it copies from, from pools. A block is given back as soon as
nothing refers to it, while the GPU may still be using it: who takes it next waits for that, on the GPU."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from typing import Any

from .driver import Device, Event, ForeignStream, OutOfDeviceMemory, Stream

_SMALLEST = 512
_IDLE_EVENTS = 256


def size_class(nbytes: int) -> int:
    """The size of the block that serves a request: at most an eighth more than asked for, so that batches of images,
    whose sizes vary, find the blocks of those before them."""
    if nbytes <= _SMALLEST:
        return _SMALLEST
    step = 1 << max((nbytes - 1).bit_length() - 4, 9)
    return -(-nbytes // step) * step


class Budget:
    """How much of a pool one pipeline has taken, and how much it may (None: no limit)."""

    def __init__(self, limit: int | None = None):
        self.limit, self.used, self.peak = limit, 0, 0

    def charge(self, nbytes: int) -> None:
        if self.limit is not None and self.used + nbytes > self.limit:
            raise OutOfDeviceMemory(
                f"the pipeline holds {self.used >> 20} MiB of the GPU's memory and needs {nbytes >> 20} MiB more, "
                f"above its "
                f"device_memory_limit of {self.limit >> 20} MiB; raise the limit, or lower batch_size or "
                "prefetch_queue_depth"
            )
        self.used += nbytes
        self.peak = max(self.peak, self.used)


class Block:
    """Memory from a pool; goes back to it when nothing refers to it any more."""

    __slots__ = ("__weakref__", "_budget", "_pool", "_streams", "address", "nbytes", "size")

    def __init__(self, pool: Pool, address: int, nbytes: int, size: int, stream: Stream, budget: Budget | None):
        self.address, self.nbytes, self.size = address, nbytes, size
        self._pool, self._streams, self._budget = pool, [stream], budget

    def used_on(self, stream: Stream) -> None:
        """Says that work of another stream reads or writes it too."""
        if all(s.closed or s.handle != stream.handle for s in self._streams):
            self._streams.append(stream)

    def __del__(self, finalizing=sys.is_finalizing) -> None:
        if getattr(self, "address", 0) and not finalizing():
            self._pool.give(self)


class Pool:
    """Memory of one device, or host memory pinned for it."""

    def __init__(self, device: Device, pinned: bool):
        self.device, self.pinned = device, pinned
        self._free: dict[int, list[tuple[int, list[tuple[Event, int]]]]] = {}
        # Blocks come back from __del__, in whatever thread and at whatever moment: nothing may be locked there.
        self._returned: deque[tuple[int, int, list[tuple[Event, int]]]] = deque()
        self._lock = threading.Lock()
        self._events: deque[Event] = deque()
        self._pid = os.getpid()
        self.held = 0  # bytes taken from the driver

    def take(self, nbytes: int, stream: Stream, budget: Budget | None = None) -> Block:
        """A block for work of `stream`. Called inside `with device:`."""
        # Pinning pages is slow: few sizes, so that the pool soon has what is asked for.
        size = 1 << max(nbytes - 1, 4095).bit_length() if self.pinned else size_class(nbytes)
        if budget is not None:
            budget.charge(size)
        try:
            address = self._find(size, stream) or self._allocate(size)
        except BaseException:
            if budget is not None:
                budget.used -= size
            raise
        return Block(self, address, nbytes, size, stream, budget)

    def _find(self, size: int, stream: Stream) -> int:
        with self._lock:
            self._collect()
            free = self._free.get(size)
            if not free:
                return 0
            best = 0
            for i, (_, events) in enumerate(free):
                if all(handle == stream.handle for _, handle in events):
                    best = i
                    break
            else:
                if self.pinned:  # the host is about to write: the GPU must be through
                    ready = [i for i, (_, events) in enumerate(free) if all(e.done() for e, _ in events)]
                    if not ready:
                        return 0
                    best = ready[0]
            if self.pinned and not all(e.done() for e, _ in free[best][1]):
                return 0
            address, events = free.pop(best)
        for event, handle in events:
            if handle != stream.handle and not self.pinned:
                stream.wait(event)
            if len(self._events) < _IDLE_EVENTS:
                self._events.append(event)
        return address

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
        """Takes a block back; what is under way on its streams may go on using it."""
        address, block.address = block.address, 0
        if block._budget is not None:
            block._budget.used -= block.size
        if self._pid != os.getpid():
            return
        events = []
        with self.device:
            for stream in block._streams:
                if stream.closed:
                    continue
                try:
                    event = self._events.pop()
                except IndexError:
                    event = Event(self.device)
                events.append((stream.record(event), stream.handle or 0))
        self._returned.append((address, block.size, events))

    def _collect(self) -> None:
        while self._returned:
            address, size, events = self._returned.popleft()
            self._free.setdefault(size, []).append((address, events))

    def idle(self) -> int:
        """Bytes that nobody uses."""
        with self._lock:
            self._collect()
            return sum(size * len(blocks) for size, blocks in self._free.items())

    def trim(self) -> None:
        """Gives what nobody uses back to the driver. Called inside `with device:`."""
        with self._lock:
            self._collect()
            free, self._free = self._free, {}
        for size, blocks in free.items():
            for address, events in blocks:
                for event, _ in events:
                    event.wait()
                (self.device.free_pinned if self.pinned else self.device.free)(address)
                self.held -= size


_lock = threading.Lock()
_pools: dict[tuple[int, bool], Pool] = {}


def pool(device: Device, pinned: bool = False) -> Pool:
    """The process's pool of a device."""
    with _lock:
        key = device.id, pinned
        if key not in _pools:
            _pools[key] = Pool(device, pinned)
        return _pools[key]


def wait_for(consumer: Stream | int | Any, event: Event, device: Device) -> None:
    """Makes a stream, also one of another library, wait for an event."""
    stream = consumer if isinstance(consumer, Stream) else ForeignStream(device, int(consumer))
    with device:
        stream.wait(event)
