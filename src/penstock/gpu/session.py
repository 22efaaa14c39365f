# SPDX-License-Identifier: Apache-2.0
"""The GPU as one pipeline uses it: streams, memory, compiled kernels, times."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..core.batch import Batch, Spec
from ..core.rows import address
from . import borrowed, compile
from .batch import DeviceBatch
from .copies import copy_on_device, pieces_of
from .cufile import GpuFiles, NotAllowed
from .driver import CudaError, Device
from .inputs import GpuInputs
from .launch import MAX_ARGS, MAX_TENSORS
from .memory import Block, Budget, give_back, pool
from .stream import Event, Stream

# Batches at a time, on streams of their own, and how many more are made ahead than are asked for: while the kernels of
# two share the GPU, files of a third are copied, others wait to take their places, and the consumer has time to come
# for the next one.
_AT_ONCE, _AHEAD = 5, 4
_AHEAD_IN_LITTLE = 1  # memory is better spent on larger batches where there is a limit, or they take a good part of it
_LARGE_PART = 8  # of the GPU's memory
_TRIED = 5  # batches that tell how much they take
_TIMED_FIRST, _TIMED_EVERY = 8, 8  # batches whose stages are timed: the first ones, then one of so many


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
    """What a stage keeps for the pipeline: engines, threads, memory."""

    def close(self) -> None:
        """Called inside `with device:`, when the GPU is through."""

    def decoded(self) -> dict[str, int]:
        """How many samples each of its engines has decoded, for statistics."""


_Kept = TypeVar("_Kept", bound=Kept)


def _nobody_counts(since: ctypes.Array) -> None: ...


class Session:
    """Made when a pipeline with GPU operators is built."""

    def __init__(self, device_id: int, memory_limit: int | None):
        self.device = Device.get(device_id)
        compile.library()  # whoever lacks it hears so when the pipeline is built
        self.budget = Budget(memory_limit)
        self.memory, self.pinned_memory = pool(self.device), pool(self.device, True)
        self.at_once = _AT_ONCE
        self._is_large = self.device.total_memory // _LARGE_PART
        self._deep: bool | None = None  # whether there is memory to make more ahead; None: not known yet
        with self.device:
            self._streams = deque(Stream(self.device) for _ in range(self.at_once))
            self._idle = Stream(self.device)  # of which nothing is asked
        self._functions: dict[tuple[str, str, int], int] = {}
        self.lock = threading.Lock()
        self._keeping = threading.Lock()
        self._pending: deque[tuple[int, Event, Event]] = deque()
        self._times: dict[int, tuple[float, int]] = {}  # ms and batches by the number of a stage's first node
        self.passes = 0  # batches that were begun
        self.kept: dict[str, Kept] = {}  # what stages keep until the end
        self.worked: Callable[[ctypes.Array], None] = _nobody_counts  # told what the session's threads do
        weakref.finalize(self, give_back, self.device, self._streams).atexit = False

    @property
    def ahead(self) -> int:
        """How many batches are made more than are asked for."""
        peak = self.budget.peak
        if self._deep is None and self.passes >= _TRIED:
            self._deep = self.budget.limit is None and 2 * peak < self._is_large
        return _AHEAD if self._deep and peak < self._is_large else _AHEAD_IN_LITTLE

    @property
    def has_spare_memory(self) -> bool:
        """Whether batches may take twice the memory that they do."""
        return self.budget.limit is None and self.passes >= _TRIED and 2 * self.budget.peak < self._is_large

    def begin(self) -> GpuPass:
        """The GPU's part of one batch, on a stream of its own: a context in which it is asked for."""
        with self.lock:
            stream = self._streams.popleft()
            self._streams.append(stream)
            self.passes += 1
        return GpuPass(self, stream)

    def host_memory(self, nbytes: int) -> Block:
        """Pinned memory of the host, for data that waits for its copy to the GPU."""
        with self.device:
            return self.pinned_memory.take(max(nbytes, 1), self._idle)

    def files(self) -> GpuFiles | None:
        """Reads files past the memory of the host, if this machine can."""
        try:
            return GpuFiles(self.device, self.budget)
        except NotAllowed:
            return None

    def inputs(self, copies: bool) -> GpuInputs:
        """Takes what others have on this GPU into batches: as a copy there, or where it is."""
        return GpuInputs(self.device, self.budget, copies)

    def keep(self, key: str, kind: type[_Kept], make: Callable[[], _Kept]) -> _Kept:
        """What `key` names; made at the first call, once, however many threads ask for it."""
        found = self.kept.get(key)
        if found is None:
            with self._keeping:
                found = self.kept.get(key)
                if found is None:
                    found = self.kept[key] = make()
        assert isinstance(found, kind)
        return found

    def function(self, source: str, entry: str, shared: int) -> int:
        """A kernel from its source text; compiled the first time."""
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
        """A timed event to be recorded."""
        return Event(self.device, timed=True, sleeps=True)

    def timer(self, stream: Stream) -> Event:
        """The time at which a stream comes here."""
        return stream.record(self.new_timer())

    def timed(self, number: int, begin: Event, end: Event) -> None:
        self._pending.append((number, begin, end))

    def _collect(self) -> None:
        """Adds up the times of what the GPU has finished, and lets go of what was lent for it."""
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
        except CudaError:  # statistics can be had when the GPU is lost, too
            pass
        return dict(self._times)

    def held(self) -> int:
        """Bytes that the process's pool has taken of the GPU."""
        return pool(self.device).held

    def close(self) -> None:
        """Gives the memory that nobody uses any more back to the driver."""
        try:
            self._close()
        except CudaError:  # the GPU is lost, and with it the memory; whoever ran the pipeline was told
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
    """What the stages of one batch share: the stream, and what has to stay until the GPU is through."""

    def __init__(self, session: Session, stream: Stream):
        self.session, self.stream = session, stream
        self.is_timed = session.passes <= _TIMED_FIRST or session.passes % _TIMED_EVERY == 0
        # Node, rows (None: all), of how many, and a `deferred_errors.DeferredErrors`.
        self.deferred_errors: list[tuple[int, np.ndarray | None, int, Any]] = []
        self.doubted: dict[int, np.ndarray] = {}  # by node, which rows (n,) the GPU has found irregular before
        self.loaded: dict[tuple[int, int], Batch] = {}  # what the sources gave, for doing it again
        self._end: Event | None = None  # of the outputs, and how much of the stream's work is before it
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
        """Memory of the GPU for this batch."""
        session = self.session
        return session.memory.take(nbytes, self.stream, session.budget)

    def take_all(self, sizes: Sequence[int]) -> list[Block]:
        """Several at once."""
        session = self.session
        return session.memory.take_all(sizes, self.stream, session.budget)

    def pinned(self, nbytes: int) -> Block:
        """Memory of the host that is copied to the GPU without waiting."""
        return self.session.pinned_memory.take(nbytes, self.stream)

    def allocate(self, spec: Spec) -> DeviceBatch:
        return DeviceBatch.on(self.stream, spec, self.session.budget)

    def copy(self, batch: DeviceBatch) -> DeviceBatch:
        """A copy in memory of this batch."""
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
        """Two events to be recorded before and behind a stage's work; None if this batch is not timed."""
        return (self.session.new_timer(), self.session.new_timer()) if self.is_timed else None

    def doubts(self) -> dict[int, np.ndarray]:
        """Waits for what the GPU says of the pictures it has decoded: which of them others have to judge, for each node
        that has any. As it is mostly nothing, the outputs are waited for as well: who takes them finds them made, and
        nobody has to ask the GPU about them again, when its driver is busy and Python's lock is wanted."""
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
        """Marks when the outputs are ready."""
        self._work, self._end = self.stream.work, None
        for batch in outputs:
            if isinstance(batch, DeviceBatch) and batch.ready is None:
                batch.ready = self._end = self._end or self.stream.mark(sleeps=bool(self.deferred_errors))


class Packing:
    """Arrays of the host that travel to the GPU in one copy. Addresses are known before the copy is made."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, np.ndarray]] = []
        self.size = 0
        self.base = 0

    def add(self, array: np.ndarray) -> int:
        """Where the array will lie, relative to the beginning."""
        at = self.size
        self._parts.append((at, array))
        self.size = at + (array.nbytes + 15 & ~15)
        return at

    def place(self, gpu: GpuPass) -> Block:
        """Takes the memory on the GPU; from now on `base` is valid."""
        block = gpu.take(max(self.size, 1))
        self.base = block.address
        return block

    def send(self, gpu: GpuPass) -> None:
        """Copies everything, as the arrays are now."""
        staging = gpu.pinned(max(self.size, 1))
        for at, array in self._parts:
            if array.nbytes:
                array = np.ascontiguousarray(array)
                ctypes.memmove(staging.address + at, address(array), array.nbytes)
        gpu.stream.upload(self.base, staging.address, self.size)
