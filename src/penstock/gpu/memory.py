# SPDX-License-Identifier: Apache-2.0
"""Memory of the GPU, and pinned memory of the host that it copies from, from pools. A block is given back as soon as
nothing refers to it, while the GPU may still be using it: who takes it next waits for that, on the GPU."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from . import dlpack_export
from .driver import CudaError, Device, OutOfDeviceMemory, forked
from .stream import Event, ForeignStream, Stream

_SMALLEST = 512
# Blocks of one size that are given back and not idle yet: where there are as many, who wants one waits for the oldest,
# on the GPU; where there are fewer, another is allocated: with its own, batches on three streams overlap.
_SPARE = 2
_MOST_USES = 8  # of a block by other libraries, before the GPU is asked which of them are over


_forks = 0  # how often this process has been forked since the first pool was made


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class _Use:
    """Work of a stream that may still use a block: the first `work` that the stream was asked for, or, if it is another
    library's, what is before `event`."""

    __slots__ = ("_event", "_stream", "_work", "handle")

    def __init__(self, stream: Stream):
        self.handle, self._work = stream.handle, stream.work
        self._stream = self._event = None
        if type(stream) is ForeignStream:
            with stream.device:
                self._event = stream.record()
        else:
            self._stream = weakref.ref(stream)  # a stream ends when its work is done

    @classmethod
    def before(cls, handle: int, event: Event) -> _Use:
        """What was asked of another library's stream before the event."""
        use = cls.__new__(cls)
        use.handle, use._work, use._stream, use._event = handle, 0, None, event
        return use

    def is_known_to_be_done(self) -> bool:
        """False if the GPU has to be asked."""
        if self._stream is None:
            return self._event is None
        stream = self._stream()
        return stream is None or stream.closed or self._work <= stream.through

    def done(self) -> bool:
        if self._stream is None:
            return self._event is None or self._event.done()
        stream = self._stream()
        return stream is None or stream.is_through(self._work)

    def is_over(self) -> bool:
        """Whether it is known to be done, or the GPU says so; locks nothing."""
        return self.is_known_to_be_done() or self._event is not None and self._event.done()

    def done_but(self, pending: dict[int | None, int]) -> bool:
        """As `done`; asks no stream twice: `pending` collects, by stream, what is known not to be done."""
        if self._stream is not None and self._work >= pending.get(self.handle, 1 << 62):
            return False
        if self.done():
            return True
        if self._stream is not None:
            pending[self.handle] = self._work
        return False

    def wait(self, waiting: Stream) -> None:
        """Makes a stream wait for it."""
        stream = self._stream() if self._stream is not None else None
        if stream is not None and not stream.closed:
            waiting.wait_for(stream, self._work)
        elif self._event is not None:
            waiting.wait(self._event)

    def block(self) -> None:
        """Makes this thread wait for it."""
        stream = self._stream() if self._stream is not None else None
        if stream is not None and not stream.closed:
            stream.mark().wait()
        elif self._event is not None:
            self._event.wait()


def size_class(nbytes: int) -> int:
    """The size of the block that serves a request: at most an eighth more than asked for, so that batches of images,
    whose sizes vary, find the blocks of those before them."""
    bits = (nbytes - 1).bit_length()
    step = 1 << bits - 4 if bits > 13 else _SMALLEST
    return -(-nbytes // step) * step if nbytes > 0 else _SMALLEST


class Budget:
    """How much of a pool one pipeline has taken, and how much it may (None: no limit)."""

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


class Block:
    """Memory from a pool; goes back to it when nothing refers to it any more."""

    __slots__ = ("__weakref__", "_budget", "_pool", "_streams", "_uses", "address", "nbytes", "size")

    def __init__(self, pool: Pool, address: int, nbytes: int, size: int, stream: Stream, budget: Budget | None):
        self.address, self.nbytes, self.size = address, nbytes, size
        self._pool, self._streams, self._budget = pool, [stream], budget
        self._uses: list[_Use] = []  # over already, or soon, whatever the streams are asked for

    def used_on(self, stream: Stream) -> None:
        """Says that work of another stream reads or writes it too."""
        streams = self._streams
        if not streams or streams[-1] is not stream and all(s.closed or s.handle != stream.handle for s in streams):
            streams.append(stream)

    def used_until(self, stream: int, event: Event) -> None:
        """Says that work of another library's stream has used it, and does no more behind the event."""
        uses = self._uses
        if len(uses) >= _MOST_USES:
            for use in [u for u in uses if u.is_over()]:
                with contextlib.suppress(ValueError):  # another thread was faster
                    uses.remove(use)
        uses.append(_Use.before(stream, event))

    def is_idle(self) -> None:
        """Says that all work which uses it is done."""
        self._streams.clear()
        self._uses.clear()

    def __del__(self, finalizing=sys.is_finalizing) -> None:
        if getattr(self, "address", 0) and not finalizing():
            self._pool.give(self)


class Pool:
    """Memory of one device, or host memory pinned for it."""

    def __init__(self, device: Device, pinned: bool):
        self.device, self.pinned = device, pinned
        self._free: dict[int, list[tuple[int, tuple[_Use, ...]]]] = {}
        # Blocks come back from __del__, in whatever thread and at whatever moment: nothing may be locked there.
        self._returned: deque[tuple[int, int, tuple[_Use, ...]]] = deque()
        self._lock = threading.Lock()
        self._forks = _forks
        self._released = dlpack_export.released_list()
        self.held = 0  # bytes taken from the driver

    def take(self, nbytes: int, stream: Stream, budget: Budget | None = None) -> Block:
        """A block for work of `stream`. Called inside `with device:`."""
        size = self._class(nbytes)
        if self._released.value:
            dlpack_export.collect()
        if budget is not None:
            budget.charge(size)
        address = 0
        uses: tuple[_Use, ...] = ()
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

    def _class(self, nbytes: int) -> int:
        # Pinning pages is slow: few sizes, so that the pool soon has what is asked for.
        return 1 << max(nbytes - 1, 4095).bit_length() if self.pinned else size_class(nbytes)

    def _wait(self, uses: tuple[_Use, ...], stream: Stream) -> None:
        """Makes a stream wait for those who had a block before."""
        for use in uses:
            if use.handle != stream.handle:
                use.wait(stream)

    def take_all(self, sizes: Sequence[int], stream: Stream, budget: Budget | None = None) -> list[Block]:
        """Several at once."""
        classes = list(map(self._class, sizes))
        blocks: list[Block] = []
        found: list[tuple[int, tuple[_Use, ...]]] = []
        if self._released.value:
            dlpack_export.collect()
        if budget is not None:
            budget.charge(sum(classes))
        try:
            with self._lock:
                self._collect()
                found = [self._find(size, stream, budget) for size in classes]
            for nbytes, size, (address, uses) in zip(sizes, classes, found):
                self._wait(uses, stream)
                blocks.append(Block(self, address or self._allocate(size), nbytes, size, stream, budget))
        except BaseException:
            # The blocks that are made give themselves back.
            if budget is not None:
                budget.used -= sum(classes[len(blocks) :])
            self._returned += [(a, n, u) for n, (a, u) in zip(classes[len(blocks) :], found[len(blocks) :]) if a]
            raise
        return blocks

    def _find(self, size: int, stream: Stream, budget: Budget | None) -> tuple[int, tuple[_Use, ...]]:
        """The address of a block, 0 if another has to be allocated, and what a stream has to wait for. While locked.

        One that the stream needn't wait for comes first, as batches that wait for each other don't overlap."""
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
        pending: dict[int | None, int] = {}  # by stream, work that is known not to be done
        for i, (address, uses) in enumerate(free):
            for use in uses:
                if (pinned or use.handle != handle) and not use.done_but(pending):
                    break
            else:
                del free[i]
                return address, ()
        # Where the host is about to write, the GPU must be through.
        return (0, ()) if pinned or self._may_grow(size, len(free), budget) else free.pop(0)

    def _may_grow(self, size: int, spare: int, budget: Budget | None) -> bool:
        """Whether to allocate a block rather than to wait for one of `spare` that are not idle."""
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
        """Takes a block back; what is under way on its streams may go on using it."""
        address, block.address = block.address, 0
        if block._budget is not None:
            block._budget.used -= block.size
        if self._forks != _forks:
            return
        streams = block._streams
        uses = tuple([_Use(s) for s in streams if not s.closed]) if streams else ()
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
        """Bytes that nobody uses."""
        with self._lock:
            self._collect()
            return sum(size * len(blocks) for size, blocks in self._free.items())

    def trim_idle(self) -> None:
        """As `trim`, without what the GPU may still be using; may be called by the garbage collector at any moment,
        also while this thread has a lock: nothing is waited for."""
        if not self._lock.acquire(blocking=False):
            return
        idle: dict[int, int] = {}  # sizes by address
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
        """Gives what nobody uses back to the driver. Called inside `with device:`."""
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
    """The process's pool of a device."""
    key = device.id, pinned
    found = _pools.get(key)
    if found is None:
        with _lock:
            found = _pools.setdefault(key, Pool(device, pinned))
    return found


def give_back(device: Device, streams: Sequence[Stream]) -> None:
    """Gives what nobody uses of a device's pools back to the driver when the owner of the streams is deleted, in
    whatever thread and at whatever moment that is."""
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
    except CudaError:  # the GPU is lost, and with it the memory
        pass


def give_back_all() -> None:
    """Gives what nobody uses of all pools back to the driver."""
    for memory in list(_pools.values()) if not forked() else ():
        with memory.device:
            memory.trim()


def wait_for(consumer: Stream | int | Any, event: Event, device: Device) -> None:
    """Makes a stream, also one of another library, wait for an event."""
    stream = consumer if isinstance(consumer, Stream) else ForeignStream(device, int(consumer))
    with device:
        stream.wait(event)
