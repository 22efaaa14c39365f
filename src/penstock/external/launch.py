# SPDX-License-Identifier: Apache-2.0
"""Starts worker processes by fork, spawn or forkserver."""

from __future__ import annotations

import ctypes
import os
import pickle
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..core.weak_set import WeakSet

_PR_SET_PDEATHSIG = 1
_FINISHED = 0
_KILL_SECONDS = 2.0

SOCKETS = WeakSet[socket.socket]()  # the main process's socket ends, which a forked child must close


class Setup:
    """Data for a worker: inherited by fork, otherwise pickled."""

    def __init__(self, index: int, n_workers: int, sock: socket.socket, arena_fd: int, trace_fd: int, sources: Any):
        self.index, self.n_workers, self._sources = index, n_workers, sources
        self._sock, self._arena, self._trace = sock, arena_fd, trace_fd
        self.spills_from = 0  # offset in its zone of the arena from which it may allocate
        self.parent = os.getpid()
        self.seed = random.SystemRandom().getrandbits(32)
        # The kernel sends the signal when the starting *thread* ends, so only the main thread may request it.
        self.dies_with_thread = threading.current_thread() is threading.main_thread()

    def __getstate__(self) -> dict[str, Any]:
        from multiprocessing.reduction import DupFd

        return {**self.__dict__, "_arena": DupFd(self._arena), "_trace": DupFd(self._trace)}

    def open(self) -> tuple[socket.socket, int, int]:
        """The socket, the arena's descriptor, and the descriptor for the traceback that SIGUSR1 requests."""
        fds = [fd if isinstance(fd, int) else fd.detach() for fd in (self._arena, self._trace)]
        return self._sock, fds[0], fds[1]

    def load(self) -> list[Any]:
        """The sources."""
        return pickle.loads(self._sources) if isinstance(self._sources, bytes) else self._sources


def die_with_parent() -> None:
    """Requests that the kernel kills this process when the thread that started it ends."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (AttributeError, OSError):
        pass  # the thread that watches the parent also does this


class Process:
    """A started worker."""

    def __init__(self, method: str, setup: Setup):
        self.pid = 0
        self._exitcode: int | None = None
        self._process: Any = None
        if method == "fork":
            self._fork(setup)
        else:
            self._start(method, setup)

    def _fork(self, setup: Setup) -> None:
        from . import worker  # before the fork: a module being imported elsewhere stays locked in the child

        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:
            for sock in list(SOCKETS):
                sock.close()
            worker.main(setup)
            code = _FINISHED
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (AttributeError, OSError, ValueError):
                    pass
            os._exit(code)

    def _start(self, method: str, setup: Setup) -> None:
        import multiprocessing

        from . import worker

        _before_multiprocessing_ends()
        context: Any = multiprocessing.get_context(method)
        setup.dies_with_thread &= method == "spawn"
        self._process = context.Process(target=worker.main, args=(setup,), daemon=True, name="penstock-worker")
        self._process.start()
        self.pid = self._process.pid

    def exitcode(self) -> int | None:
        """None while it runs; the negated signal number if a signal killed it."""
        if self._process is not None:
            return self._process.exitcode
        if self._exitcode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # something else has waited for it
                self._exitcode = 0
            else:
                if pid:
                    self._exitcode = os.waitstatus_to_exitcode(status)
        return self._exitcode

    def kill(self) -> None:
        if self.exitcode() is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def end(self, until: float) -> None:
        """Waits until a time; then kills it if it has not ended."""
        if not self._join(until):
            self.kill()
            self._join(time.monotonic() + _KILL_SECONDS)

    def _join(self, until: float) -> bool:
        """Waits until a time of the monotonic clock; returns whether it has ended."""
        pause = 0.0005
        while self.exitcode() is None:
            if time.monotonic() > until:
                return False
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return True


AT_EXIT: list[Callable[[], None]] = []  # called before multiprocessing kills its processes and closes its sockets
_told = 0  # id of the process where the handler is registered


def _before_multiprocessing_ends() -> None:
    """Registers a handler that runs before multiprocessing's own exit handler, which kills its processes before earlier
    modules' handlers run: a waiting thread would take that for a crash and try to restart a worker."""
    global _told
    if _told == os.getpid():
        return
    from multiprocessing import util

    def end() -> None:
        for each in AT_EXIT:
            each()

    util.Finalize(None, end, exitpriority=100)
    _told = os.getpid()


def check_fork() -> None:
    """Raises RuntimeError if forking would leave CUDA unusable."""
    if cuda_is_initialised():
        raise RuntimeError(
            "worker processes can't be forked any more, because CUDA has been initialised in this process and does not "
            "survive a fork. Either call start_py_workers() on all pipelines with parallel sources before anything "
            "uses the GPU (building a pipeline with GPU operators does, and so does a framework's first CUDA tensor), "
            'or start the workers afresh: py_start_method="spawn"'
        )


def cuda_is_initialised() -> bool:
    """Whether this process has a CUDA context. Loads and initializes nothing."""
    try:
        # RTLD_NOLOAD: only if it is already loaded.
        cuda = ctypes.CDLL("libcuda.so.1", os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    count, context = ctypes.c_int(0), ctypes.c_void_p()
    try:
        if cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:  # 3: cuInit was not called
            return False
        if cuda.cuCtxGetCurrent(ctypes.byref(context)) == 0 and context.value:
            return True
        flags, active, device = ctypes.c_uint(0), ctypes.c_int(0), ctypes.c_int(0)
        for i in range(count.value):
            if cuda.cuDeviceGet(ctypes.byref(device), i) == 0:
                cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
                if active.value:
                    return True
    except AttributeError:  # a stub library
        pass
    return False
