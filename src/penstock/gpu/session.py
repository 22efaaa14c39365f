# SPDX-License-Identifier: Apache-2.0
"""The GPU resources of one pipeline: streams, memory, compiled kernels, times."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.batch import Batch, Spec
from ..core.memory import Buffer
from ..core.rows import address
from . import borrowed, compile
from .batch import COPIED_TOGETHER, DeviceBatch
from .copies import copy_on_device, pieces_of
from .cufile import GpuFiles, NotAllowed
from .driver import CudaError, Device
from .inputs import GpuInputs
from .launch import MAX_ARGS, MAX_TENSORS
from .memory import Block, Budget, give_back, pool
from .stream import Event, Stream

# Number of concurrent batches, each on its own stream, and of batches made ahead of those requested: while kernels of
# two share the GPU, a third copies its files, others are queued, and the consumer has time to request the next one.
_AT_ONCE, _AHEAD = 5, 4
_AHEAD_IN_LITTLE = 1  # with a limit, or if batches use a large part of the memory, it is better spent on larger batches
_LARGE_PART = 8  # 1 / this of the GPU's memory is a large part
_TRIED = 5  # batches after which memory use is known
_TIMED_FIRST, _TIMED_EVERY = 8, 8  # stages are timed in the first batches, then in every _TIMED_EVERY-th


class LaunchArgument(ctypes.Structure):
    """`struct Launch`: the argument of every kernel."""

    _fields_ = [
        ("tensors", ctypes.c_uint64 * MAX_TENSORS),
        ("args", ctypes.c_uint64 * MAX_ARGS),
        ("scratch", ctypes.c_uint64),
        ("n", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    ]


class Kept(Protocol):
    """A resource that a stage keeps for the pipeline: engines, threads, memory."""

    def close(self) -> None:
        """Called inside `with device:`, after the GPU is done."""

    def decoded(self) -> dict[str, int]:
        """Number of samples decoded by each engine, for statistics."""


_Kept = TypeVar("_Kept", bound=Kept)


def _nobody_counts(since: ctypes.Array) -> None: ...


class Session:
    """Created when a pipeline with GPU operators is built."""

    def __init__(self, device_id: int, memory_limit: int | None):
        self.device = Device.get(device_id)
        compile.library()  # raises when the pipeline is built if it is missing
        self.budget = Budget(memory_limit)
        self.memory, self.pinned_memory = pool(self.device), pool(self.device, True)
        self.at_once = _AT_ONCE
        self._is_large = self.device.total_memory // _LARGE_PART
        self._deep: bool | None = None  # whether there is memory to make more batches ahead; None: not known yet
        with self.device:
            self._streams = deque(Stream(self.device) for _ in range(self.at_once))
            self._idle = Stream(self.device)  # a stream without work
        self._functions: dict[tuple[str, str, int], int] = {}
        self.lock = threading.Lock()
        self._keeping = threading.Lock()
        self._pending: deque[tuple[int, Event, Event]] = deque()
        self._times: dict[int, tuple[float, int]] = {}  # ms and number of batches, by number of a stage's first node
        self.passes = 0  # batches started
        self.kept: dict[str, Kept] = {}  # resources of stages, kept until the end
        # Where decoders with equal results decode the batches that begin: "gpu", "cpu", or "both" in turns.
        self.decode_on = "gpu"
        self.worked: Callable[[ctypes.Array], None] = _nobody_counts  # adds the CPU time of the session's threads
        weakref.finalize(self, give_back, self.device, self._streams).atexit = False

    @property
    def ahead(self) -> int:
        """Number of batches made ahead of those requested."""
        peak = self.budget.peak
        if self._deep is None and self.passes >= _TRIED:
            self._deep = self.budget.limit is None and 2 * peak < self._is_large
        return _AHEAD if self._deep and peak < self._is_large else _AHEAD_IN_LITTLE

    @property
    def has_spare_memory(self) -> bool:
        """Whether there is memory for batches of twice the size."""
        return self.budget.limit is None and self.passes >= _TRIED and 2 * self.budget.peak < self._is_large

    def begin(self) -> GpuPass:
        """Starts the GPU work of one batch on its own stream; returns a context manager."""
        with self.lock:
            stream = self._streams.popleft()
            self._streams.append(stream)
            self.passes += 1
            return GpuPass(self, stream, self.passes)

    def host_memory(self, nbytes: int) -> Block:
        """Pinned host memory for data to be copied to the GPU."""
        with self.device:
            return self.pinned_memory.take(max(nbytes, 1), self._idle)

    def files(self) -> GpuFiles | None:
        """A reader of files directly to GPU memory; None if this machine can't."""
        try:
            return GpuFiles(self.device, self.budget)
        except NotAllowed:
            return None

    def inputs(self, copies: bool) -> GpuInputs:
        """Makes batches of other libraries' arrays on this GPU: copied there, or used in place."""
        return GpuInputs(self.device, self.budget, copies)

    def keep(self, key: str, kind: type[_Kept], make: Callable[[], _Kept]) -> _Kept:
        """The resource called `key`; created once, at the first call. Thread-safe."""
        found = self.kept.get(key)
        if found is None:
            with self._keeping:
                found = self.kept.get(key)
                if found is None:
                    found = self.kept[key] = make()
        assert isinstance(found, kind)
        return found

    def function(self, source: str, entry: str, shared: int) -> int:
        """A kernel, compiled from its source at first use."""
        key = source, entry, shared
        function = self._functions.get(key)
        if function is None:
            with self.lock:
                if key not in self._functions:
                    module = self.device.load(compile.compile(source, entry, self.device.architecture))
                    self._functions[key] = self.device.function(module, entry, shared)
                function = self._functions[key]
        return function

    def new_timer(self) -> Event:
        """A timed event, not yet recorded."""
        return Event(self.device, timed=True, sleeps=True)

    def timer(self, stream: Stream) -> Event:
        """A timed event recorded in a stream."""
        return stream.record(self.new_timer())

    def timed(self, number: int, begin: Event, end: Event) -> None:
        self._pending.append((number, begin, end))

    def _collect(self) -> None:
        """Adds the times of finished work, and releases borrowed memory."""
        borrowed.collect()
        if not self._pending:
            return
        with self.lock:
            while self._pending and self._pending[0][2].done():
                number, begin, end = self._pending.popleft()
                ms, n = self._times.get(number, (0.0, 0))
                self._times[number] = ms + end.since(begin), n + 1

    def times(self) -> dict[int, tuple[float, int]]:
        """Milliseconds of the GPU and number of batches, by the number of a stage's first node."""
        try:
            with self.device:
                self._collect()
        except CudaError:  # statistics remain available when the GPU is lost
            pass
        return dict(self._times)

    def held(self) -> int:
        """Bytes of GPU memory held by the process's pool."""
        return pool(self.device).held

    def close(self) -> None:
        """Returns unused memory to the driver."""
        try:
            self._close()
        except CudaError:  # the GPU is lost, and its memory with it; the user got an error before
            pass

    def _close(self) -> None:
        with self.device:
            for stream in self._streams:
                stream.synchronize()
            for kept in self.kept.values():
                kept.close()
            self.kept.clear()
            borrowed.collect()
            pool(self.device).trim()
            pool(self.device, True).trim()


class GpuPass:
    """Shared by the stages of one batch: the stream, and objects to keep until the GPU is done."""

    def __init__(self, session: Session, stream: Stream, number: int):
        """`number` counts the session's passes."""
        self.session, self.stream = session, stream
        self.decodes_on_cpu = session.decode_on == "cpu" or (session.decode_on == "both" and number % 2 == 0)
        self.is_timed = number <= _TIMED_FIRST or number % _TIMED_EVERY == 0
        # (node number, rows or None for all, number of rows, deferred_errors.DeferredErrors)
        self.deferred_errors: list[tuple[int, np.ndarray | None, int, Any]] = []
        self.doubted: dict[int, np.ndarray] = {}  # by node, mask (n,) of rows found irregular in the previous run
        self.loaded: dict[tuple[int, int], Batch] = {}  # outputs of the sources, for running the batch again
        self._end: Event | None = None  # the event after the outputs; `_work` is the stream's work before it
        self._work = 0

    def __enter__(self) -> GpuPass:
        self.session.device.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            if kind is None:
                self.session._collect()
        finally:
            self.session.device.__exit__()

    def take(self, nbytes: int) -> Block:
        """Allocates GPU memory for this batch."""
        session = self.session
        return session.memory.take(nbytes, self.stream, session.budget)

    def take_all(self, sizes: Sequence[int]) -> list[Block]:
        """Allocates several blocks."""
        session = self.session
        return session.memory.take_all(sizes, self.stream, session.budget)

    def pinned(self, nbytes: int) -> Block:
        """Pinned host memory for asynchronous copies."""
        return self.session.pinned_memory.take(nbytes, self.stream)

    def host_memory(self, nbytes: int) -> Block | Buffer:
        """Host memory for samples to be copied to the GPU: pinned, so that nothing is copied on the host, except for
        small batches, several of which are copied together."""
        return self.pinned(nbytes) if nbytes > COPIED_TOGETHER else Buffer(nbytes)

    def allocate(self, spec: Spec) -> DeviceBatch:
        return DeviceBatch.on(self.stream, spec, self.session.budget)

    def copy(self, batch: DeviceBatch) -> DeviceBatch:
        """Copies another batch to memory of this batch's stream."""
        batch.used_on(self.stream)
        out = self.allocate(batch.spec)
        copy_on_device(pieces_of(batch, out), self.stream)
        out.sources = batch.sources
        return out

    def launch(
        self,
        source: str,
        entry: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        tensors: Sequence[int],
        args: Sequence[int],
        scratch: int,
        n: int,
    ) -> None:
        """Launches kernel `entry` of `source` for n rows. `tensors` and `args` are addresses of rows on the GPU."""
        argument = LaunchArgument(n=n, scratch=scratch)
        argument.tensors[: len(tensors)] = list(tensors)
        argument.args[: len(args)] = list(args)
        self.stream.launch(self.session.function(source, entry, shared), grid, block, shared, argument)

    def timer(self) -> Event:
        return self.session.timer(self.stream)

    def times(self) -> tuple[Event, Event] | None:
        """Two events to record before and after a stage's work; None if this batch is not timed."""
        return (self.session.new_timer(), self.session.new_timer()) if self.is_timed else None

    def doubts(self) -> dict[int, np.ndarray]:
        """Waits for the GPU's reports about decoded images; returns, by node, the images that other decoders must
        process. As there are rarely any, it also waits for the outputs: then consumers need not query the GPU again,
        while its driver is busy and the GIL is contended."""
        doubted: dict[int, np.ndarray] = {}
        for number, rows, n, deferred in self.deferred_errors:
            if (bad := deferred.wait(self._end)) is not None:
                doubted.setdefault(number, np.zeros(n, bool))[bad if rows is None else rows[bad]] = True
        self.deferred_errors.clear()
        if self._end is not None:
            self._end.passed = True
            self.stream.reached(self._work)
        return doubted

    def finish(self, outputs: list[Batch]) -> None:
        """Records the event after which the outputs are ready."""
        self._work, self._end = self.stream.work, None
        for batch in outputs:
            if isinstance(batch, DeviceBatch) and batch.ready is None:
                batch.ready = self._end = self._end or self.stream.mark(sleeps=bool(self.deferred_errors))


class Packing:
    """Host arrays that are copied to the GPU at once. Their addresses are known before the copy."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray]] = []
        self.size = 0
        self.base = 0

    def add(self, array: np.ndarray) -> int:
        """Adds an array and returns its offset."""
        at = self.size
        self._parts.append((at, array))
        self.size = at + (array.nbytes + 15 & ~15)
        return at

    def place(self, gpu: GpuPass) -> Block:
        """Allocates the GPU memory; from now on `base` is valid."""
        block = gpu.take(max(self.size, 1))
        self.base = block.address
        return block

    def send(self, gpu: GpuPass) -> None:
        """Copies the current contents of all arrays."""
        staging = gpu.pinned(max(self.size, 1))
        for at, array in self._parts:
            if array.nbytes:
                array = np.ascontiguousarray(array)
                ctypes.memmove(staging.address + at, address(array), array.nbytes)
        gpu.stream.upload(self.base, staging.address, self.size)
