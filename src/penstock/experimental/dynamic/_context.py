# SPDX-License-Identifier: Apache-2.0
"""Resources for computing calls, and the background thread."""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...core.kernels import Pool
from ...core.weak_set import WeakSet
from ...pipeline.settings import available_cpus
from . import _stream
from ._calls import forget_plans
from ._device import Device
from ._invocation import Invocation, ancestors, compute, forget_locks
from ._mode import EvalMode
from ._patience import Patience

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

_GATHERING = 0.001  # seconds from the first pending call until the background thread computes them
_local = threading.local()
_pools: dict[int, Pool] = {}
_sessions: dict[int, Any] = {}
_lock = threading.Lock()
_contexts: WeakSet[EvalContext] = WeakSet()
_num_threads: int | None = None


def _pool(n: int) -> Pool:
    with _lock:
        if n not in _pools:
            _pools[n] = Pool(n)
        return _pools[n]


def _session(device_id: int) -> Any:
    from ...gpu.session import Session

    with _lock:
        if device_id not in _sessions:
            _sessions[device_id] = Session(device_id, None)
        return _sessions[device_id]


def default_num_threads() -> int:
    given = os.environ.get("DALI_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) > 0 else available_cpus()


def get_num_threads() -> int:
    """Returns the default number of threads of contexts."""
    return _num_threads or default_num_threads()


def set_num_threads(n: int | None) -> None:
    """Sets the default number of threads of contexts; None: the number of processors."""
    global _num_threads
    if n is not None and _threads(n) is None:
        raise ValueError(f"the number of threads is at least 1; got {n}")
    _num_threads = n


def _threads(n: Any) -> int | None:
    """Checks a number of threads. Returns None for 0, the default."""
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"num_threads is an integer; got {n!r}")
    if n < 0:
        raise ValueError(f"num_threads is at least 1; got {n}")
    return n.__index__() or None


class ThreadPool:
    """Threads for the CPU part of calls, which contexts may share.

    Parameters
    ----------
    num_threads
        Number of threads. By default `get_num_threads()`.
    device_id
        Accepted for compatibility.
    """

    def __init__(self, num_threads: int | None = None, *, device_id: int | None = -1):
        self._n = (None if num_threads is None else _threads(num_threads)) or get_num_threads()
        self._device_id = None if device_id == -1 else device_id
        self._pool = Pool(self._n)

    @property
    def num_threads(self) -> int:
        return self._n

    @property
    def device_id(self) -> int | None:
        return self._device_id

    def __repr__(self) -> str:
        return f"ThreadPool(num_threads={self._n})"


class EvalContext:
    """Resources with which calls are computed: threads, a GPU and its stream. `with EvalContext(...):` applies to the
    calls inside, in this thread; each thread has a default one.

    Parameters
    ----------
    num_threads
        Number of threads for the CPU part. By default `get_num_threads()`.
    device_id
        The GPU. By default the current device.
    cuda_stream
        The stream on which results on the GPU can be used.
    thread_pool
        Threads shared with other contexts. Not together with `num_threads`.

    >>> from penstock.experimental import dynamic as ndd
    >>> with ndd.EvalContext(num_threads=2) as ctx:
    ...     x = ndd.zeros(shape=[2], batch_size=3)
    >>> ctx.num_threads, x.shape
    (2, [(2,), (2,), (2,)])
    """

    def __init__(
        self,
        *,
        num_threads: int | None = None,
        device_id: int | None = None,
        cuda_stream: Any = None,
        thread_pool: ThreadPool | None = None,
    ):
        if num_threads is not None and thread_pool is not None:
            raise ValueError("num_threads and thread_pool can't be given together")
        if thread_pool is not None and not isinstance(thread_pool, ThreadPool):
            raise TypeError(f"thread_pool is a ThreadPool; got {type(thread_pool).__name__}")
        self._n = None if num_threads is None else _threads(num_threads)
        self._given_pool = thread_pool
        if device_id is not None:
            Device("gpu", device_id)  # raises an error if there is no such GPU
        self._device_id = device_id
        self._stream = _stream.stream(stream=cuda_stream, device_id=device_id)
        self._is_default = False
        self._checkpoint: Checkpoint | None = None
        self._entered: list[Device | None] = []
        self.lock = threading.RLock()
        self._patience = Patience()
        _contexts.add(self)
        self._waiting: deque[Invocation] = deque()  # pending calls of eager mode
        self._deferred = WeakSet[Invocation]()

    # Public -------------------------------------------------------------------------------------------------------

    @staticmethod
    def current() -> EvalContext:
        """Returns the context of the innermost `with` of this thread, or its default."""
        stack = getattr(_local, "stack", None)
        return stack[-1] if stack else EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """Returns this thread's default context."""
        try:
            return _local.default
        except AttributeError:
            context = _local.default = EvalContext()
            context._is_default = True
            return context

    def __enter__(self) -> EvalContext:
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        self._entered.append(None if self._device_id is None else Device("gpu", self._device_id).__enter__())
        return self

    def __exit__(self, kind: Any, *exception: Any) -> None:
        _local.stack.pop()
        if (entered := self._entered.pop()) is not None:
            entered.__exit__()
        if kind is None:
            self.evaluate_all()

    def evaluate_all(self) -> None:
        """Computes all pending calls. Their results raise their errors."""
        self._compute(self._take() + [i for i in list(self._deferred) if i.is_wanted()])
        self._deferred.clear()

    @property
    def num_threads(self) -> int:
        """Number of threads of the CPU part."""
        return self._given_pool.num_threads if self._given_pool else self._n or get_num_threads()

    @property
    def thread_pool(self) -> ThreadPool:
        """The ThreadPool of these threads: the one given, or a new one."""
        if self._given_pool is None:
            pool = ThreadPool.__new__(ThreadPool)
            pool._n, pool._device_id, pool._pool = self.num_threads, None, self.pool()
            return pool
        return self._given_pool

    @property
    def device_id(self) -> int | None:
        """The GPU; None if there is none."""
        if self._device_id is not None:
            return self._device_id
        current = Device.current()
        return current.device_id

    @property
    def cuda_stream(self) -> _stream.Stream | None:
        """The stream on which results on the GPU can be used; None: the host waits when a result is read."""
        return self._stream if self._stream is not None or not self._is_default else _stream.get_current_stream()

    @property
    def checkpoint(self) -> Checkpoint:
        """The `checkpoint.Checkpoint` of this context."""
        if self._checkpoint is None:
            from .checkpoint import Checkpoint

            self._checkpoint = Checkpoint()
        return self._checkpoint

    def cached_results(self, invocation: Any) -> None:
        """Accepted for compatibility: nothing is cached."""

    def cache_results(self, invocation: Any, results: Any) -> None:
        """Accepted for compatibility: nothing is cached."""

    def __repr__(self) -> str:
        return f"EvalContext(num_threads={self.num_threads}, device_id={self._device_id})"

    # Internal -------------------------------------------------------------------------------------------------------

    def pool(self) -> Pool:
        """The threads for the CPU part."""
        return self._given_pool._pool if self._given_pool else _pool(self._n or get_num_threads())

    def session(self, device_id: int) -> Any:
        """The session for the GPU part."""
        return _session(device_id)

    def make_ready(self, values: list[Any]) -> None:
        """Makes the context's stream, if any, wait for values on the GPU."""
        stream = self.cuda_stream
        for value in values:
            if stream is not None and value is not None and not value.on_host:
                with value.device:
                    value.used_on(stream._stream)

    def add(self, inv: Invocation, at_once: bool) -> None:
        """Computes a call now or later, depending on the mode."""
        mode = EvalMode.current()
        if at_once or mode in (EvalMode.sync_cpu, EvalMode.sync_full):
            inv.settle(mode is EvalMode.sync_full)
        elif mode is EvalMode.deferred:
            self._deferred.add(inv)
        else:
            self._waiting.append(inv)
            if len(self._waiting) == 1:
                _background.wake(self)

    def compute(self, inv: Invocation) -> None:
        """Computes a call together with the pending ones."""
        self._compute([*self._take(), inv])

    def compute_again(self, inv: Invocation) -> None:
        """Computes a call again, as not all of its outputs were kept."""
        with self.lock:
            inv.revive()
        self._compute([inv])

    def compute_waiting(self) -> None:
        self._compute(self._take())

    def _take(self) -> list[Invocation]:
        """Removes and returns the pending eager calls whose results are still needed."""
        found: list[Invocation] = []
        while self._waiting:
            try:
                inv = self._waiting.popleft()
            except IndexError:  # another thread was faster
                break
            if not inv.done and inv.is_wanted():
                found.append(inv)
        return found

    def _compute(self, wanted: Iterable[Invocation]) -> None:
        # Other contexts are called without holding the lock, to avoid deadlocks.
        found = ancestors(wanted)
        for inv in found:
            if inv.context is not self:
                inv.context.compute(inv)
        # GPU work depends on this thread's streams, so it stays in this thread.
        if any(inv.call.uses_gpu for inv in found):
            self._compute_here(wanted)
        else:
            self._patience.run(lambda: self._compute_here(wanted))

    def _compute_here(self, wanted: Iterable[Invocation]) -> None:
        with self.lock:
            todo = ancestors(wanted)
            if todo:
                compute(todo, self)


class _Background:
    """One thread for all contexts that computes pending eager calls."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._contexts: queue.SimpleQueue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def wake(self, context: EvalContext) -> None:
        if self._thread is None:
            with _lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="penstock-dynamic", daemon=True)
                    self._thread.start()
        self._contexts.put(weakref.ref(context))

    def _run(self) -> None:
        while (reference := self._contexts.get()) is not None:
            time.sleep(_GATHERING)
            context = reference()
            if context is not None and context._waiting:
                context.compute_waiting()
            del context

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            self._contexts.put(None)
            thread.join(5)

    def after_fork(self) -> None:
        self._begin()


_background = _Background()
atexit.register(_background.stop)


def _after_fork() -> None:
    # Threads of the parent may hold locks. What they were computing is computed here again if needed.
    global _lock
    _lock = threading.Lock()
    for context in list(_contexts):
        context.lock = threading.RLock()
    forget_plans()
    forget_locks()
    _sessions.clear()
    _background.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
