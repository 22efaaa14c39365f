# SPDX-License-Identifier: Apache-2.0
"""A worker process as the main process sees it."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import time
from typing import Any

from . import launch
from .job import Job
from .task import Task

EXIT_SECONDS = 1.0
_TRACE_SECONDS = 0.3


class WorkerProcess:
    """One process, its socket, and the tasks it has not answered, oldest first."""

    def __init__(self, index: int):
        self.index = index
        self.process: launch.Process | None = None
        self.sock: socket.socket | None = None
        self.trace_fd = os.memfd_create("penstock-traceback", os.MFD_CLOEXEC)
        self.waiting: dict[int, tuple[Job, Task, float]] = {}  # by number, with the time they should take
        self.load_ns = 0.0
        self.ready = False
        self.warned = 0.0  # seconds in one call that were warned of
        self.spilled_to = 0  # bytes of its zone of the arena that batches may still lie in

    @property
    def alive(self) -> bool:
        return self.sock is not None

    @property
    def name(self) -> str:
        return f"worker process {self.index} (pid {self.process.pid if self.process else '-'})"

    def fileno(self) -> int:
        assert self.sock is not None
        return self.sock.fileno()

    def start(self, method: str, n_workers: int, arena_fd: int, sources: Any) -> int:
        """The descriptor on which it will be heard."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        launch.SOCKETS.add(ours)
        try:
            setup = launch.Setup(self.index, n_workers, theirs, arena_fd, self.trace_fd, sources)
            setup.spills_from = self.spilled_to  # behind what another process in its place has left there
            self.process = launch.Process(method, setup)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.sock, self.ready, self.waiting, self.load_ns, self.warned = ours, False, {}, 0.0, 0.0
        return ours.fileno()

    def stack(self) -> str:
        """Where it is in its code, as it tells itself."""
        assert self.process is not None
        before = os.fstat(self.trace_fd).st_size
        try:
            os.kill(self.process.pid, signal.SIGUSR1)
        except ProcessLookupError:
            return ""
        size, end = before, time.monotonic() + _TRACE_SECONDS
        while time.monotonic() < end:
            time.sleep(0.02)
            size, last = os.fstat(self.trace_fd).st_size, size
            if size == last > before:
                break
        text = os.pread(self.trace_fd, 1 << 16, before).decode("utf-8", "replace")
        own = os.path.dirname(os.path.abspath(__file__))
        frames = itertools.takewhile(lambda line: own not in line, text.splitlines())
        lines = [line for line in frames if line.startswith("  File")][:8]
        return "\nIt is at, innermost first:\n" + "\n".join(lines) if lines else ""

    def hang_up(self) -> None:
        """A worker that waits for work ends by itself then."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    def end(self, until: float | None) -> None:
        """Waits until then for it to end by itself; None where it is another process's child."""
        if until is not None and self.process is not None:
            self.process.end(until)
        if self.trace_fd >= 0:
            os.close(self.trace_fd)
            self.trace_fd = -1
